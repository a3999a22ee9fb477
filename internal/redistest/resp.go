package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// frame reads one whole value of the Redis protocol (RESP2 or 3), bytes as they came.
func frame(r *bufio.Reader) ([]byte, error) {
	var b bytes.Buffer
	err := copyFrame(&b, r)
	return b.Bytes(), err
}

func copyFrame(b *bytes.Buffer, r *bufio.Reader) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	b.Write(line)
	if len(line) < 3 {
		return fmt.Errorf("not the Redis protocol: %q", line)
	}
	count := 0
	switch line[0] {
	case '$', '=', '!': // a string of so many bytes
		n, err := length(line)
		if err != nil || n < 0 {
			return err
		}
		_, err = io.CopyN(b, r, int64(n)+2)
		return err
	case '*', '~', '>': // so many values
		count, err = length(line)
	case '%', '|': // so many pairs; after an attribute comes the value itself
		count, err = length(line)
		count *= 2
		if line[0] == '|' {
			count++
		}
	}
	if err != nil {
		return err
	}
	for range count {
		if err := copyFrame(b, r); err != nil {
			return err
		}
	}
	return nil
}

func length(line []byte) (int, error) { return strconv.Atoi(string(bytes.TrimSpace(line[1:]))) }

// words is a command's frame as its words.
func words(frame []byte) []string {
	r := bufio.NewReader(bytes.NewReader(frame))
	head, err := r.ReadBytes('\n')
	if err != nil || head[0] != '*' {
		return []string{string(bytes.TrimSpace(frame))}
	}
	var all []string
	for {
		head, err := r.ReadBytes('\n')
		if err != nil {
			return all
		}
		n, err := length(head)
		if err != nil || n < 0 {
			return all
		}
		word := make([]byte, n+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return all
		}
		all = append(all, string(word[:n]))
	}
}
