package breaker

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// The breaker does what the naive model says, whatever is done to it in whichever order, and however its clock steps.
func FuzzOperations(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a long enough seed for some operations on a breaker, one after the other: acquire, settle, wait, force, update"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		drive(t, rand.New(newTape(ops)), 20+len(ops)/16)
	})
}

// tape is a random source that plays a fuzzer's input, and goes on at random, but always the same way, when it is over.
type tape struct {
	rest []byte
	then rand.Source
}

func newTape(input []byte) *tape {
	return &tape{rest: input, then: rand.NewPCG(uint64(len(input)), 0)}
}

func (t *tape) Uint64() uint64 {
	if len(t.rest) == 0 {
		return t.then.Uint64()
	}
	var next [8]byte
	t.rest = t.rest[copy(next[:], t.rest):]
	return binary.LittleEndian.Uint64(next[:])
}
