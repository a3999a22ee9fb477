package toggle

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestASwitchIsOneForEverybodyWhoHoldsACopy(t *testing.T) {
	s := New(true)
	other := s
	assert.True(t, other.On())
	s.Set(false)
	assert.False(t, other.On())
	other.Set(true)
	assert.True(t, s.On())
	assert.False(t, New(false).On())
}

func TestTheZeroSwitchIsNone(t *testing.T) {
	assert.False(t, Switch{}.Wired())
	assert.True(t, New(false).Wired())
}
