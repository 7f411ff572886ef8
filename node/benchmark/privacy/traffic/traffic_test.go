package traffic

import (
	"bytes"
	"testing"
)

// A window of the data is found where it is.
func TestSearchFindsWindows(t *testing.T) {
	data := []byte("a bird sings in the morning, and another one answers")
	noise := bytes.Repeat([]byte{0, 1, 2, 3, 250}, 100)
	if windows, found := Search(noise, data); windows != len(data)-Window+1 || found != 0 {
		t.Errorf("%d windows, %d found", windows, found)
	}
	sent := bytes.Join([][]byte{noise, data[7 : 7+Window+2], noise}, nil)
	if _, found := Search(sent, data); found != 3 {
		t.Errorf("%d found of 3", found)
	}
	if _, found := Search(append(noise, data[:Window-1]...), data); found != 0 {
		t.Errorf("%d found of 15 bytes", found)
	}
}
