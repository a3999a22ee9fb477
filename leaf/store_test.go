package leaf_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

func TestStoreErrorIsARefusalOnlyBeforeTheCall(t *testing.T) {
	admit := &leaf.StoreError{Op: leaf.OpAdmit, Name: "db", Err: errWork, NotExecuted: true}
	record := &leaf.StoreError{Op: leaf.OpRecord, Name: "db", Err: refusal{}}
	require.True(t, admit.Rejected())
	require.False(t, record.Rejected())
	require.Equal(t, leaf.Ignored, leaf.Outcome{Err: admit}.Judged().Verdict)
	require.Equal(t, leaf.Returned, leaf.Outcome{Err: record}.Judged().Verdict,
		"the outermost decides: the callback ran, whatever the store says")
}

func TestStoreErrorText(t *testing.T) {
	e := &leaf.StoreError{Op: leaf.OpAdmit, Name: "db", Err: errWork, NotExecuted: true}
	require.EqualError(t, e, `store: admit for "db" failed (not executed): work failed`)
	e = &leaf.StoreError{Op: leaf.OpRecord, Err: errWork}
	require.EqualError(t, e, `store: record failed (may have been executed): work failed`)
}

func TestStoreErrorUnwraps(t *testing.T) {
	var err error = &leaf.StoreError{Op: leaf.OpAdmit, Err: errors.Join(errWork, context.DeadlineExceeded)}
	require.ErrorIs(t, err, errWork)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	store, ok := errors.AsType[*leaf.StoreError](err)
	require.True(t, ok)
	require.Equal(t, leaf.OpAdmit, store.Op)
}

func TestStoreErrorRetryAfterIsTheStoresOwn(t *testing.T) {
	wait, ok := (&leaf.StoreError{Op: leaf.OpAdmit, Err: refusal{wait: time.Second}}).RetryAfter()
	require.True(t, ok)
	require.Equal(t, time.Second, wait)
	for _, err := range []error{nil, errWork, refusal{}} {
		_, ok = (&leaf.StoreError{Op: leaf.OpAdmit, Err: err}).RetryAfter()
		require.False(t, ok)
	}
}

func TestOutageNames(t *testing.T) {
	require.Equal(t, leaf.FailLocal, leaf.Outage(0), "the default")
	for o, name := range map[leaf.Outage]string{
		leaf.FailLocal: "fail_local", leaf.FailOpen: "fail_open", leaf.FailClosed: "fail_closed", 3: "Outage(3)",
	} {
		require.Equal(t, name, o.String())
	}
}

// A typed nil says nothing, and panics nowhere.
func TestStoreErrorNil(t *testing.T) {
	var err *leaf.StoreError
	require.Equal(t, "store: nil", err.Error())
	require.NoError(t, err.Unwrap())
	require.False(t, err.Rejected())
	_, ok := err.RetryAfter()
	require.False(t, ok)
}
