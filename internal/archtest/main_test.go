package archtest

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file is a file that was never written to a disk.
func file(t *testing.T, path, src string) File {
	t.Helper()
	f, err := Parse(path, []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// importing is a file of package p that imports paths.
func importing(t *testing.T, path string, paths ...string) File {
	t.Helper()
	src := "package p\n"
	for _, p := range paths {
		src += "import _ \"" + p + "\"\n"
	}
	return file(t, path, src)
}
