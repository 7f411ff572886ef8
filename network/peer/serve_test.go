package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/wire"
)

// TestServe checks that a blob that is withheld answers like one that is absent, byte for byte, and is served later.
func TestServe(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(6, 3*blob.LeafBytes)
	small := data[:100]
	released := make(chan struct{})
	source := start(t, Config{Serve: func(admission.Standing, blob.CID) bool {
		select {
		case <-released:
			return true
		default:
			return false
		}
	}})
	put(t, source, data)
	put(t, source, small)
	ask := start(t, Config{})
	if err := ask.Connect(t.Context(), source.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	absent := blobtest.Data(7, 3*blob.LeafBytes)
	for _, r := range []struct{ from, to uint32 }{{0, 0}, {0, 1}, {1, 3}, {9, 19}} {
		for _, pair := range [][2][]byte{{data, absent}, {small, absent[:100]}} {
			withheld := exchange(t, ask, source, asking(blob.Of(pair[0]).Bytes(), r.from, r.to).Encode())
			missing := exchange(t, ask, source, asking(blob.Of(pair[1]).Bytes(), r.from, r.to).Encode())
			if !bytes.Equal(withheld, missing) || !bytes.Equal(withheld, []byte{wire.StatusNotFound}) {
				t.Errorf("leaves %d to %d: withheld answers %v, absent %v", r.from, r.to, withheld, missing)
			}
		}
	}
	if _, err := ask.Fetch(t.Context(), blob.Of(data), addrs(source)); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Fetch of a withheld blob: %v", err)
	}
	close(released)
	wantFetch(t, ask, data, addrs(source))
}

func asking(root []byte, from, to uint32) wire.Request {
	return wire.Request{Root: root, From: from, To: to}
}

// exchange sends raw bytes over a blob stream and returns all that comes back.
func exchange(t *testing.T, from, to *Host, message []byte) []byte {
	t.Helper()
	s, err := from.host.NewStream(t.Context(), to.ID(), wire.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	if _, err := s.Write(message); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(s)
	if err != nil {
		return nil // reset
	}
	return answer
}

// TestHostileRequests sends a server what no client of ours does.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(8, 3*blob.LeafBytes)
	source, ask := holder(t, data), start(t, Config{})
	if err := ask.Connect(t.Context(), source.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	root := blob.Of(data).Bytes()
	for name, c := range map[string]struct {
		message []byte
		want    []byte
	}{
		"beyond the end":   {asking(root, 2, 4).Encode(), []byte{wire.StatusRefused}},
		"backwards":        {asking(root, 2, 1).Encode(), []byte{wire.StatusRefused}},
		"empty range":      {asking(root, 1, 1).Encode(), []byte{wire.StatusRefused}},
		"long range":       {asking(root, 0, wire.MaxRange+1).Encode(), []byte{wire.StatusRefused}},
		"greatest range":   {asking(root, 1<<32-2, 1<<32-1).Encode(), []byte{wire.StatusRefused}},
		"no root":          {asking(nil, 0, 1).Encode(), []byte{wire.StatusRefused}},
		"not a root":       {asking([]byte("root"), 0, 1).Encode(), []byte{wire.StatusRefused}},
		"not CBOR":         {[]byte{0, 1, 0xff}, []byte{wire.StatusRefused}},
		"no bytes":         {[]byte{0, 0}, []byte{wire.StatusRefused}},
		"too long":         {binary.BigEndian.AppendUint16(nil, wire.MaxRequestBytes+1), nil},
		"cut off":          {[]byte{0, 9, 1}, nil},
		"nothing":          {nil, []byte{}},
		"two bad in a row": {[]byte{0, 0, 0, 0}, []byte{wire.StatusRefused, wire.StatusRefused}},
	} {
		if got := exchange(t, ask, source, c.message); !bytes.Equal(got, c.want) {
			t.Errorf("%s: answer %v, want %v", name, got, c.want)
		}
	}
	wantFetch(t, ask, data, addrs(source))
}
