package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// handler is the panel at /, and the console at /console/.
func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/console/", s.live)
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // what was compiled in is there
	}
	mux.Handle("/", http.FileServerFS(files))
	mux.HandleFunc("GET /faults", s.faults)
	mux.HandleFunc("POST /faults", s.breakOne)
	otherOrigins := http.NewCrossOriginProtection() // a page of somebody else's must not break the shop
	return otherOrigins.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		if !loopbackName(r.Host) {
			http.Error(w, fmt.Sprintf("Host is %q: want localhost or a loopback address", r.Host), http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// state is a downstream on the panel.
type state struct {
	Name  string `json:"name"`
	Fault Fault  `json:"fault"`
}

// faults is what is wrong with whom, and what could be.
func (s *shop) faults(w http.ResponseWriter, _ *http.Request) {
	out := struct {
		Faults      []Fault `json:"faults"`
		Downstreams []state `json:"downstreams"`
	}{Faults: faults}
	for _, d := range s.downstreams {
		out.Downstreams = append(out.Downstreams, state{d.Name, d.Fault()})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(out) // the client's to notice
}

// breakOne takes {"name": "bank", "fault": "outage"}.
func (s *shop) breakOne(w http.ResponseWriter, r *http.Request) {
	var wanted state
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&wanted); err != nil {
		http.Error(w, `want {"name": "bank", "fault": "outage"}`, http.StatusBadRequest)
		return
	}
	d := s.downstream(wanted.Name)
	if d == nil || !slices.Contains(faults, wanted.Fault) {
		http.Error(w, "no such downstream, or no such fault: GET /faults has both", http.StatusBadRequest)
		return
	}
	d.Break(wanted.Fault)
	s.faults(w, r)
}

// onLoopback says that the request comes from this machine, and means it. Its address alone would let too many in.
func onLoopback(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback() && loopbackName(r.Host)
}

// loopbackName says that a browser which asks for this Host means this machine. A page of somebody else's may have a name that
// leads here by now (DNS rebinding): to the browser it is then of our origin, and it comes from this machine.
func loopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}
