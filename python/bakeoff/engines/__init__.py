"""The engines: each takes one resolved run and writes one results folder."""
