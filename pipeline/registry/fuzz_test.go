package registry

import (
	"bytes"
	"strings"
	"testing"
)

// A reload with whatever document either is in force whole or has changed nothing, and the registry still serves.
func FuzzReload(f *testing.F) {
	const before = `
resilience:
  retry: { r: { max-attempts: 2, wait-duration: 0 } }
  circuit-breaker: { c: { window-size: 10 } }
  bulkhead: { b: { max-concurrent: 2 } }
  rate-limiter: { l: { refill-rate: 5 } }
  pipelines: { p: { timeout: 1s, retry: r, circuit-breaker: c, rate-limiter: l, bulkhead: b } }
`
	f.Add([]byte(strings.Replace(before, "max-concurrent: 2", "max-concurrent: 3", 1)))
	f.Add([]byte(strings.Replace(before, "max-concurrent: 2", "max-concurrent: 0", 1)))
	f.Add([]byte("resilience: { enabled: false }"))
	f.Add([]byte(`{"resilience": {"pipelines": {"p": {"retry": "gone"}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := LoadYAML(strings.NewReader(before), unavailable())
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		p, page := r.MustPipeline("p"), r.Describe().String()
		if err := r.Reload(bytes.NewReader(text)); err != nil {
			if now := r.Describe().String(); now != page {
				t.Fatalf("refused (%v), and changed\n%s\nto\n%s", err, page, now)
			}
		}
		if again, err := r.Pipeline("p"); err == nil && again != p {
			t.Fatal("another instance under the same name")
		}
		_ = p.String()
	})
}
