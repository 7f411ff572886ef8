package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/starling-network/starling/network/blob"
)

func TestRequest(t *testing.T) {
	for _, want := range []Request{
		{blob.Of(nil).Bytes(), 0, 0},
		{blob.Of(nil).Bytes(), 0, 1},
		{blob.Of(make([]byte, 3*blob.LeafBytes)).Bytes(), blob.MaxLeaves - MaxRange, blob.MaxLeaves},
	} {
		body, err := ReadRequest(bytes.NewReader(want.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		got, c, err := ParseRequest(body)
		if err != nil || got.From != want.From || got.To != want.To || !bytes.Equal(c.Bytes(), want.Root) {
			t.Errorf("ParseRequest: %v, %v; want %v", got, err, want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(Request{blob.Of(nil).Bytes(), 3, 9}.Encode())
	f.Add([]byte{0, 200, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := ReadRequest(bytes.NewReader(data))
		if err != nil {
			return
		}
		r, c, err := ParseRequest(body)
		if err != nil {
			return
		}
		if blob.Check(c) != nil || r.From > r.To || r.To-r.From > MaxRange || r.To > blob.MaxLeaves {
			t.Errorf("accepted %v of %v", r, c)
		}
		if again := r.Encode(); !bytes.Equal(again, data[:len(again)]) {
			t.Errorf("%x read as %x", data, again)
		}
	})
}

// FuzzAnswer reads a stranger's bytes as a client does.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{StatusOK, 0, 0, 0, 3, 1, 2, 3})
	f.Add([]byte{StatusOK, 255, 255, 255, 255})
	f.Add([]byte{StatusBusy})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		if ReadStatus(r) != nil {
			return
		}
		const limit = 100
		for _, buf := range [][]byte{nil, make([]byte, 10), make([]byte, limit)} {
			in := bytes.NewReader(data[1:])
			got, err := ReadFrame(in, buf, limit)
			if err == nil && (len(got) > limit || !bytes.Equal(got, data[1+HeadBytes:][:len(got)])) {
				t.Errorf("frame of %d bytes: %x", len(got), got)
			}
			if err != nil && !errors.Is(err, ErrHostile) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("untyped error %v", err)
			}
		}
	})
}
