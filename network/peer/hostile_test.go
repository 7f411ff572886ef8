package peer

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/peer/wire"
)

// impostor makes a host answer every request by calling answer.
func impostor(t *testing.T, answer func(w io.Writer, r wire.Request)) *Host {
	t.Helper()
	h := start(t, Config{})
	h.host.SetStreamHandler(wire.Protocol, func(s network.Stream) {
		defer s.Close()
		for {
			body, err := wire.ReadRequest(s)
			if err != nil {
				return
			}
			r, _, err := wire.ParseRequest(body)
			if err != nil {
				return
			}
			answer(s, r)
		}
	})
	return h
}

// dropped reports whether a host asks a peer no more, because it was hostile.
func dropped(t *testing.T, h, by *Host) bool {
	t.Helper()
	_, err := h.Fetch(t.Context(), blob.Of([]byte("another")), addrs(by))
	return errors.Is(err, wire.ErrHostile) && strings.Contains(err.Error(), "before")
}

func frame(data []byte) []byte {
	b := append(make([]byte, wire.HeadBytes), data...)
	wire.PutHead(b)
	return b
}

// answerWith serves data as an honest host does, but passes every leaf through change.
func answerWith(data []byte, change func(i int, leaf []byte) []byte) func(io.Writer, wire.Request) {
	m := blob.Describe(data)
	return func(w io.Writer, r wire.Request) {
		_, _ = w.Write([]byte{wire.StatusOK})
		if r.IsManifest() {
			_, _ = w.Write(frame(m.Encode()))
		}
		for i := int(r.From); i < int(r.To); i++ {
			lo := i * blob.LeafBytes
			_, _ = w.Write(frame(change(i, bytes.Clone(data[lo:lo+m.LeafSize(i)]))))
		}
	}
}

// TestHostilePeers checks that whatever one peer sends, the result is right if another is honest, that the liar is
// named if none is, and that it is never asked again.
func TestHostilePeers(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(9, 12*blob.LeafBytes+3)
	flip := func(_ int, leaf []byte) []byte { leaf[len(leaf)-1] ^= 1; return leaf }
	for name, answer := range map[string]func(io.Writer, wire.Request){
		"bad leaf":   answerWith(data, flip),
		"short leaf": answerWith(data, func(_ int, leaf []byte) []byte { return leaf[1:] }),
		"empty leaf": answerWith(data, func(int, []byte) []byte { return nil }),
		"long leaf": answerWith(data, func(_ int, leaf []byte) []byte {
			return append(leaf,
				make([]byte, blob.LeafBytes)...)
		}),
		"other blob": answerWith(blobtest.Data(10, len(data)), func(_ int, leaf []byte) []byte { return leaf }),
		"huge frame": func(w io.Writer, _ wire.Request) { _, _ = w.Write([]byte{wire.StatusOK, 255, 255, 255, 255}) },
		"bad status": func(w io.Writer, _ wire.Request) { _, _ = w.Write([]byte{99}) },
		"bad manifest": func(w io.Writer, _ wire.Request) {
			_, _ = w.Write(append([]byte{wire.StatusOK}, frame([]byte{1, 2, 3})...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			liar := impostor(t, answer)
			sink := start(t, Config{})
			c := blob.Of(data)
			if _, err := sink.Fetch(t.Context(), c, addrs(liar)); !errors.Is(err, wire.ErrHostile) {
				t.Fatalf("Fetch from the liar alone: %v", err)
			}
			if !dropped(t, sink, liar) {
				t.Error("the liar was not dropped")
			}
			if has, err := sink.config.Store.Has(t.Context(), c); err != nil || has {
				t.Errorf("the store has the blob: %v, %v", has, err)
			}
			wantFetch(t, sink, data, addrs(liar, holder(t, data)))
		})
	}
}

// TestHostileAmongHonest meets the liar in the middle of a transfer from three.
func TestHostileAmongHonest(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(11, 40*blob.LeafBytes)
	liar := impostor(t, answerWith(data, func(i int, leaf []byte) []byte { leaf[i] ^= 1; return leaf }))
	sink := start(t, Config{})
	wantFetch(t, sink, data, addrs(liar, holder(t, data), holder(t, data)))
}

// TestStalled has a peer that takes a request and never answers: others are asked for what it owes.
func TestStalled(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 9 * blob.LeafBytes} {
		data := blobtest.Data(12, size)
		silent := impostor(t, func(io.Writer, wire.Request) {})
		sink := start(t, Config{Hedge: 20 * time.Millisecond, Stall: time.Minute})
		wantFetch(t, sink, data, addrs(silent, holder(t, data)))
	}
	sink := start(t, Config{Stall: time.Millisecond})
	silent := impostor(t, func(io.Writer, wire.Request) {})
	_, err := sink.Fetch(t.Context(), blob.Of(nil), addrs(silent))
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("Fetch from a silent peer: %v", err)
	}
}

// TestFailing has a peer that breaks off in the middle of every answer: the blob arrives leaf by leaf all the same.
func TestFailing(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(13, 6*blob.LeafBytes)
	honest := answerWith(data, func(_ int, leaf []byte) []byte { return leaf })
	h := start(t, Config{})
	h.host.SetStreamHandler(wire.Protocol, func(s network.Stream) {
		body, err := wire.ReadRequest(s)
		if err == nil {
			r, _, _ := wire.ParseRequest(body)
			r.To = min(r.To, r.From+1)
			honest(s, r)
		}
		_ = s.Close()
	})
	wantFetch(t, start(t, Config{}), data, addrs(h))
}

func TestBusy(t *testing.T) {
	t.Parallel()
	busy := impostor(t, func(w io.Writer, _ wire.Request) { _, _ = w.Write([]byte{wire.StatusBusy}) })
	sink := start(t, Config{})
	if _, err := sink.Fetch(t.Context(), blob.Of(nil), addrs(busy)); !errors.Is(err, wire.ErrBusy) {
		t.Errorf("Fetch from a busy peer: %v", err)
	}
	if dropped(t, sink, busy) {
		t.Error("a busy peer was dropped")
	}
}
