package secure

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
)

func key(t *testing.T) crypto.PrivKey {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A certificate is valid at any time, so that peers whose clocks disagree find each other over TCP, which is dialled
// first.
func TestNoClockInTheHandshake(t *testing.T) {
	s, err := New("", key(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, _ := s.identity.ConfigForPeer("")
	c, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	c.UnhandledCriticalExtensions = nil // libp2p's own, which it checks itself
	pool := x509.NewCertPool()
	pool.AddCert(c)
	for _, at := range []time.Time{time.Unix(1, 0), time.Now().Add(-2 * time.Hour), time.Now().AddDate(200, 0, 0)} {
		if _, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: at}); err != nil {
			t.Errorf("at %v: %v", at, err)
		}
	}
}

// counted counts the writes of a connection, and fails from one on.
type counted struct {
	net.Conn
	writes int
	fails  error
	sent   bytes.Buffer
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes++
	if c.fails != nil {
		return 0, c.fails
	}
	return c.sent.Write(p)
}

// Bytes that are written while a connection is held leave together and in order, and no more than a batch is kept.
func TestBatched(t *testing.T) {
	below := &counted{}
	b := &batched{Conn: below}
	var want bytes.Buffer
	write := func(n int) {
		t.Helper()
		p := bytes.Repeat([]byte{byte(n)}, n)
		want.Write(p)
		if got, err := b.Write(p); got != n || err != nil {
			t.Fatalf("wrote %d of %d: %v", got, n, err)
		}
	}
	expect := func(writes int) {
		t.Helper()
		if below.writes != writes {
			t.Errorf("%d writes, wanted %d", below.writes, writes)
		}
	}
	write(7)
	expect(1)
	b.hold()
	for range 4 {
		write(16 << 10)
	}
	expect(1)
	write(1000) // beyond a batch
	expect(2)
	write(2 * batchBytes)
	expect(4)
	if err := b.release(); err != nil {
		t.Fatal(err)
	}
	if expect(4); !bytes.Equal(below.sent.Bytes(), want.Bytes()) {
		t.Error("other bytes were written")
	}

	below.fails = context.DeadlineExceeded
	b.hold()
	write(5)
	if err := b.release(); !errors.Is(err, below.fails) {
		t.Errorf("what was kept is lost: %v", err)
	}
	below.fails = nil
	if _, err := b.Write([]byte{1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("and the connection goes on: %v", err)
	}
}

// The largest message of the multiplexer is one batch.
func TestBatchOfAMessage(t *testing.T) {
	s, err := New("", key(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	shaken := make(chan error, 1)
	go func() {
		_, err := s.SecureInbound(t.Context(), far, "")
		shaken <- err
	}()
	c, err := s.SecureOutbound(t.Context(), near, s.self)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	secure := c.(*secureConn)
	below := &counted{Conn: near}
	secure.below.Conn, secure.below.in = below, bufio.NewReader(near)
	message := make([]byte, 64<<10)
	for range 4 { // records are shorter at first
		if _, err := secure.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	before := below.writes
	if _, err := secure.Write(message); err != nil || below.writes != before+1 {
		t.Errorf("%d writes of one message, %v", below.writes-before, err)
	}
}
