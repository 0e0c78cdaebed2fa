fn main() {
    let json = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    
    match bakeoff_sim::simulate(&json) {
        Ok(o) => {
            
            println!("{}", serde_json::to_string_pretty(&o.counters).unwrap());
            println!("{}", o.teardown);
            if std::env::args().nth(2).is_some() {
                for i in 0..o.series.time.len() {
                    let n = &o.series.names[o.series.series[i] as usize];
                    println!("{} {} {} {}", o.series.time[i], n.1, n.2, o.series.value[i]);
                }
            }
        }
        Err(e) => println!("ERR {e}"),
    }
}
