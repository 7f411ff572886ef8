package dialogue

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/peer/lifetime"
)

// at is a host on the loopback interface.
func at(t *testing.T) (host.Host, *lifetime.Lifetime) {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	life := lifetime.New()
	t.Cleanup(func() {
		life.End()
		_ = h.Close()
		life.Wait()
	})
	return h, life
}

// mirror answers with the question, twice.
type mirror struct{ ended chan struct{} }

func (m mirror) Answer(question []byte) []byte { return bytes.Repeat(question, 2) }
func (m mirror) End()                          { close(m.ended) }

func TestDialogue(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a, _ := at(t)
	b, life := at(t)
	stranger, _ := at(t)
	m := mirror{make(chan struct{})}
	b.SetStreamHandler("/test/1", Handler(life, func(id peer.ID) bool { return id == a.ID() }, 8,
		func(peer.ID) Answerer { return m }))
	to := peer.AddrInfo{ID: b.ID(), Addrs: b.Addrs()}
	d, err := Open(ctx, a, to, "/test/1", 12)
	if err != nil {
		t.Fatal(err)
	}
	for _, question := range []string{"abc", "", "defghi"} {
		got, err := d.Ask(ctx, []byte(question))
		if err != nil || string(got) != question+question {
			t.Fatalf("%q: %q, %v", question, got, err)
		}
	}
	if _, err := d.Ask(ctx, make([]byte, 7)); !errors.Is(err, ErrFrame) {
		t.Errorf("an answer of 14 bytes, of 12: %v", err)
	}
	d.Close()
	<-m.ended
	m.ended = make(chan struct{})
	if d, err = Open(ctx, a, to, "/test/1", 12); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Ask(ctx, make([]byte, 9)); err == nil {
		t.Error("a question of 9 bytes is answered, of 8")
	}
	<-m.ended
	other, err := Open(ctx, stranger, to, "/test/1", 12)
	if err == nil {
		_, err = other.Ask(ctx, []byte("abc"))
	}
	if err == nil {
		t.Error("a stranger is answered")
	}
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 1, 2, 3})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := read(bytes.NewReader(b), 100)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := write(&again, frame); err != nil || len(frame) > 100 || !bytes.HasPrefix(b, again.Bytes()) {
			t.Errorf("%v is read as %v, %v", b, frame, err)
		}
	})
}
