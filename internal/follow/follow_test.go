package follow

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatWasToldMeansWhatWasWritten(t *testing.T) {
	field := 0
	f := Tell(&field, 5)
	require.Equal(t, 5, field)
	require.Equal(t, 0, f.Written(field))
	require.Equal(t, 6, f.Written(6), "who changes it means what he writes")
	require.Equal(t, 0, f.Written(0))
}

// So a Config whose fields were all written is equal to what is told of it.
func TestWhatIsToldAsItWasWrittenNeedsNoMemory(t *testing.T) {
	field := 5
	f := Tell(&field, 5)
	require.Equal(t, Field[int]{}, f)
	require.Equal(t, 5, f.Written(5))
	require.Equal(t, 0, f.Written(0))
	require.True(t, math.IsNaN(Field[float64]{}.Written(math.NaN())))
}

// An interface may hold what == panics at: it is never what was told.
func TestAFieldThatHoldsTheUncomparableIsItself(t *testing.T) {
	var field any
	told := new(int)
	f := Tell[any](&field, told)
	require.Nil(t, f.Written(told))
	require.Equal(t, []int{1}, f.Written([]int{1}))
	require.Equal(t, []int{1}, Field[any]{}.Written([]int{1}))
}
