package redistest

import (
	"os"
	"strconv"
	"strings"
)

// state is the process's letter in /proc (R, S, T, Z, …); 0 where there is none.
func state(pid int) byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name before it may hold anything
	if rest == "" {
		return 0
	}
	return rest[0]
}

// stopped says whether a signal stopped it; where there is no /proc, the signal counts as delivered.
func stopped(pid int) bool {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return true
	}
	return state(pid) == 'T'
}

// gone says whether it ended by itself, a zombie included.
func gone(pid int) bool {
	if pid == 0 {
		return true
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return false
	}
	c := state(pid)
	return c == 0 || c == 'Z'
}
