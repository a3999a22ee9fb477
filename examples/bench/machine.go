package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/fairlead/fairlead/examples/bench/peers"
)

// machine says where the figures are from; they mean nothing elsewhere.
func machine(load string) []string {
	lines := []string{
		time.Now().UTC().Format("2006-01-02 15:04 MST"),
		fmt.Sprintf("%s, %d CPUs, GOMAXPROCS %d (%s/%s)", cpu(), runtime.NumCPU(), runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH),
		runtime.Version(),
	}
	if load != "" {
		lines = append(lines, "load average at the start: "+load)
	}
	return append(lines, "peers: "+strings.Join(peers.Versions(), ", "))
}

func cpu() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	_, rest, _ := strings.Cut(string(text), "model name")
	model, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(model, " \t:")
}

// load is what else the machine had to do.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
