package otelx

// Names is how many names are remembered.
func (t *Telemetry) Names() int { return len(*t.known.known.Load()) }
