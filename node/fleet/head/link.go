package head

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// The connection between a member and its head is TLS 1.3. Each side has a key, which the ticket names, and signs its
// certificate itself.

// errStranger refuses a connection whose other side has another key than it should.
var errStranger = errors.New("head: the other side of the connection has no key of a ticket")

const linkTimeout = 15 * time.Second // to open a connection to a head

// certificate presents a key. The other side reads no other field of it.
func certificate(key ed25519.PrivateKey) (tls.Certificate, error) {
	t := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(nil, t, t, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// shown is the key that the other side has proven to have.
func shown(s tls.ConnectionState) ed25519.PublicKey {
	if len(s.PeerCertificates) == 0 {
		return nil
	}
	key, _ := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey) // nil: of another kind
	return key
}

// config of a side that has a key, and lets the other side in if its key is known.
func config(key ed25519.PrivateKey, known func(ed25519.PublicKey) bool) (*tls.Config, error) {
	own, err := certificate(key)
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		InsecureSkipVerify: true, // no authority has signed the certificates: VerifyConnection compares the key
		VerifyConnection: func(s tls.ConnectionState) error {
			if key := shown(s); key == nil || !known(key) {
				return errStranger
			}
			return nil
		}}, err
}

// Link is the side of a member: an address of its loopback whose connections come out at the head. Every program of the
// machine may use it.
type Link struct {
	ticket Ticket
	config *tls.Config
	listen net.Listener

	mu  sync.Mutex
	cut error
}

// Dial opens the link of a ticket, until the context ends. It returns an error if the head cannot be reached, or does
// not know the ticket.
func Dial(ctx context.Context, t Ticket) (*Link, error) {
	c, err := config(t.key(), func(head ed25519.PublicKey) bool { return bytes.Equal(head, t.Head[:]) })
	if err != nil {
		return nil, err
	}
	l := &Link{ticket: t, config: c}
	if l.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = l.listen.Close() })
	go l.serve(ctx)
	return l, nil
}

// Address is the address of the loopback, host:port; "" without a link.
func (l *Link) Address() string {
	if l == nil {
		return ""
	}
	return l.listen.Addr().String()
}

// Cut is why the latest connection reached nothing: the head is away, or does not know the ticket. It is nil after one
// that carried something, and without a link.
func (l *Link) Cut() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// carried notes how a connection ended that has carried some bytes from the head.
func (l *Link) carried(bytes int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused, ok := errors.AsType[*net.OpError](err)
	switch {
	case bytes > 0:
		l.cut = nil
	case ok && refused.Op == "remote error": // an alert of TLS
		l.cut = fmt.Errorf("%s does not know the ticket of this machine", l.ticket.Address)
	case err != nil:
		l.cut = err
	}
}

func (l *Link) serve(ctx context.Context) {
	for {
		in, err := l.listen.Accept()
		if err != nil {
			return // it is closed
		}
		go l.carry(ctx, in)
	}
}

// open is a connection to the head.
func (l *Link) open(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	return (&tls.Dialer{Config: l.config}).DialContext(ctx, "tcp", l.ticket.Address)
}

// carry connects a program of the machine with the head, until one of them ends.
func (l *Link) carry(ctx context.Context, in net.Conn) {
	defer in.Close()
	out, err := l.open(ctx)
	if err != nil {
		l.carried(0, err)
		return
	}
	defer out.Close()
	defer context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(out, in) // ends when a side does
		_ = out.(*tls.Conn).CloseWrite()
	})
	l.carried(io.Copy(struct{ io.Writer }{in}, out)) // without a method that wraps the error
	_ = in.Close()
	both.Wait()
}

// Invitation asks the head for the invitation of the member; "" if it has none for it.
func (l *Link) Invitation(ctx context.Context) (string, error) {
	out, err := l.open(ctx) // not over the loopback, which would hide the reason of a refusal
	if err != nil {
		return "", fmt.Errorf("head: %s: %w", l.ticket.Address, err)
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.ticket.Address+invitationPath, nil)
	if err != nil {
		return "", err
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return out, nil }}}
	answer, err := c.Do(r)
	if err != nil {
		return "", fmt.Errorf("head: it does not know the ticket, or does not answer: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusNotFound:
		return "", nil
	case http.StatusOK:
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxQuestion))
		return string(text), err
	}
	return "", fmt.Errorf("head: it answers %s", answer.Status)
}
