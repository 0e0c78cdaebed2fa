// Bulk TCP flows through one bottleneck, in ns-3: the counterpart of `ns3.py`'s documents for bakeoff's simulator.
//
// client --- left === bottleneck === right --- server: access links of 10 Gbit/s without delay, half of the round trip
// on the bottleneck's cable in each direction. TCP CUBIC with SACK, timestamps, delayed ACKs of two segments, segments
// of 1448 bytes and buffers of 4 MiB. Prints one line of JSON: bytes that reached the sinks, processor seconds inside
// Simulator::Run, and ns-3's count of events.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

using namespace ns3;

int
main(int argc, char** argv)
{
    uint32_t flows = 1;
    double seconds = 60.0;
    double rttMs = 20.0;
    double megabits = 100.0;
    std::string qdisc = "fifo";
    CommandLine words;
    words.AddValue("flows", "how many", flows);
    words.AddValue("seconds", "simulated seconds", seconds);
    words.AddValue("rtt", "round-trip time of the empty path [ms]", rttMs);
    words.AddValue("rate", "of the bottleneck [Mbit/s]", megabits);
    words.AddValue("qdisc", "fifo (1000 packets) or fq_codel", qdisc);
    words.Parse(argc, argv);
    if (qdisc != "fifo" && qdisc != "fq_codel")
    {
        std::cerr << "--qdisc: '" << qdisc << "'; expected fifo or fq_codel\n";
        return 2;
    }

    const uint32_t segment = 1448;
    const uint32_t buffer = 4u << 20;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));

    NodeContainer nodes;
    nodes.Create(4);
    const NodeContainer ends[] = {
        NodeContainer(nodes.Get(0), nodes.Get(1)),
        NodeContainer(nodes.Get(1), nodes.Get(2)),
        NodeContainer(nodes.Get(2), nodes.Get(3)),
    };
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("0ms"));
    PointToPointHelper narrow;
    narrow.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(megabits * 1e6))));
    narrow.SetChannelAttribute("Delay", TimeValue(Seconds(rttMs / 2000.0)));
    // The queue discipline is the queue: the device below it holds as little as it can.
    narrow.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    const NetDeviceContainer devices[] = {
        access.Install(ends[0]),
        narrow.Install(ends[1]),
        access.Install(ends[2]),
    };

    InternetStackHelper stack;
    stack.Install(nodes);

    TrafficControlHelper wide;
    wide.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("1000p"));
    TrafficControlHelper shaped;
    if (qdisc == "fifo")
    {
        shaped.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("1000p"));
    }
    else
    {
        shaped.SetRootQueueDisc("ns3::FqCoDelQueueDisc");
    }
    wide.Install(devices[0]);
    shaped.Install(devices[1]);
    wide.Install(devices[2]);

    Ipv4AddressHelper addresses;
    Ipv4Address server;
    for (int i = 0; i < 3; ++i)
    {
        addresses.SetBase(Ipv4Address(0x0a000000u + (static_cast<uint32_t>(i) << 8)), Ipv4Mask(0xffffff00u));
        const Ipv4InterfaceContainer given = addresses.Assign(devices[i]);
        server = given.GetAddress(1);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        const auto port = static_cast<uint16_t>(5001 + flow);
        PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        const ApplicationContainer sink = receiver.Install(nodes.Get(3));
        sinks.push_back(DynamicCast<PacketSink>(sink.Get(0)));
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(server, port));
        sender.SetAttribute("MaxBytes", UintegerValue(0));
        sender.SetAttribute("SendSize", UintegerValue(segment));
        sender.Install(nodes.Get(0)).Start(MilliSeconds(flow));
    }

    Simulator::Stop(Seconds(seconds));
    const std::clock_t before = std::clock();
    Simulator::Run();
    const double spent = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    uint64_t received = 0;
    for (const auto& sink : sinks)
    {
        received += sink->GetTotalRx();
    }
    std::cout << "{\"received_bytes\": " << received << ", \"cpu_s\": " << spent
              << ", \"events\": " << Simulator::GetEventCount() << "}\n";
    Simulator::Destroy();
    return 0;
}
