package breaker

// A token is a serial and the state that it was issued in.
const stateBits = 2

func token(serial uint64, s State) uint64 { return serial<<stateBits | uint64(s) }
func tokenState(token uint64) State       { return State(token & (1<<stateBits - 1)) }
func tokenSerial(token uint64) uint64     { return token >> stateBits }

// ofGeneration says that a permit is of the generation of word: a closed circuit's permits carry its word, the permits of
// a half-open episode its serial or a later one, since every probe takes one.
func ofGeneration(word, token uint64) bool {
	return token == word || tokenState(token) == HalfOpen && tokenState(word) == HalfOpen && token > word
}
