// Package head is the way to a network for machines that reach one host alone: the head of a local network. It lets in
// machines with a ticket, gives each the invitation to the fleet of its owner, and passes their questions and
// transactions on to validators, and their connections on to participants. It is no participant, has no key of a
// network, and sees of the connections between peers only bytes that are encrypted between these.
package head

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a head.
const (
	maxTunnels  = 1024             // at a time, of all members
	maxOfOne    = 256              // at a time, of one member
	maxQuestion = 16 << 20         // bytes of a question or transaction
	dialTimeout = 15 * time.Second // to a participant
	asideAfter  = 30 * time.Minute // a tunnel without a byte ends
)

// Head is an http.Handler. Its fields do not change while it answers.
type Head struct {
	// Validators carries a request to one of the validators, whichever URL it has (endpoint.NewTransport).
	Validators http.RoundTripper
	// At reports whether a participant is dialled at an address, so that members may connect to it.
	At func(netip.AddrPort) bool
	// Members are the machines that are let in.
	Members *Members
	// Invitation is the text of the invitation of a member, by the name of its ticket; "": there is none.
	Invitation func(name string) (string, error)
	// Private also lets members connect to participants at addresses of private networks.
	Private bool
	Log     *slog.Logger

	proxy  sync.Once
	passes http.Handler
	sent   atomic.Int64 // bytes to participants
	got    atomic.Int64 // bytes from them

	mu      sync.Mutex
	tunnels int
	of      map[string]int // tunnels of each member that has some, by its key
}

// Traffic is how many tunnels there are, and how many bytes went through all so far.
func (h *Head) Traffic() (tunnels, sent, received int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(h.tunnels), h.sent.Load(), h.got.Load()
}

// invitationPath is what a member asks for its invitation. No interface of a validator begins with it.
const invitationPath = "/starling/invitation"

// ServeHTTP implements http.Handler: to members it is a proxy for connections (CONNECT) to participants, gives their
// invitations, and passes all other requests on to a validator.
func (h *Head) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var key ed25519.PublicKey
	if r.TLS != nil {
		key = shown(*r.TLS)
	}
	ctx, done, name, known := h.Members.let(r.Context(), key)
	defer done()
	if !known {
		http.Error(w, "the ticket is none of this head", http.StatusForbidden)
		return
	}
	r = r.WithContext(ctx)
	switch {
	case r.Method == http.MethodConnect:
		h.connect(w, r, string(key))
	case r.URL.Path == invitationPath:
		h.invite(w, name)
	default:
		h.pass(w, r)
	}
}

// invite gives a member its invitation, by the name of its ticket.
func (h *Head) invite(w http.ResponseWriter, name string) {
	text, err := h.Invitation(name)
	switch {
	case err != nil:
		h.Log.Warn("cannot read an invitation", "machine", name, "err", err)
		http.Error(w, "the head cannot read the invitation", http.StatusInternalServerError)
	case text == "":
		http.Error(w, "the head has no invitation for this machine", http.StatusNotFound)
	default:
		h.Log.Info("a machine got its invitation", "machine", name)
		_, _ = io.WriteString(w, text) // fails when the member is gone
	}
}

// pass passes a question on to a validator.
func (h *Head) pass(w http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody { // another validator may have to be asked
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
		if err != nil {
			http.Error(w, "the question is too large, or did not arrive", http.StatusRequestEntityTooLarge)
			return
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
	}
	h.proxy.Do(func() {
		h.passes = &httputil.ReverseProxy{Transport: h.Validators,
			Rewrite: func(p *httputil.ProxyRequest) {
				p.Out.URL.Scheme, p.Out.URL.Host = "http", "validator" // the transport names one
				p.Out.GetBody = p.In.GetBody
			},
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				h.Log.Warn("no validator answers", "err", err)
				http.Error(w, "no validator answers the head", http.StatusBadGateway)
			},
			ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelDebug),
		}
	})
	h.passes.ServeHTTP(w, r)
}

// errTarget refuses to connect a member.
var errTarget = errors.New("not the address of a participant that may be reached from here")

// target is the address to which a member may be connected.
func (h *Head) target(text string) (netip.AddrPort, error) {
	to, err := netip.ParseAddrPort(text)
	if err != nil {
		return to, fmt.Errorf("%w: %q", errTarget, text)
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	a := to.Addr()
	if !a.IsGlobalUnicast() || a.IsPrivate() && !h.Private || !h.At(to) {
		return to, fmt.Errorf("%w: %s", errTarget, to)
	}
	return to, nil
}

// enter counts a tunnel of the member with a key, unless it, or all together, have as many as they may.
func (h *Head) enter(member string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tunnels >= maxTunnels || h.of[member] >= maxOfOne {
		return false
	}
	if h.of == nil {
		h.of = map[string]int{}
	}
	h.tunnels++
	h.of[member]++
	return true
}

// leave is called when a tunnel that entered has ended.
func (h *Head) leave(member string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tunnels--
	if h.of[member]--; h.of[member] == 0 {
		delete(h.of, member)
	}
}

// connect connects a member to a participant, until one of them ends.
func (h *Head) connect(w http.ResponseWriter, r *http.Request, member string) {
	to, err := h.target(r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if !h.enter(member) {
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	defer h.leave(member)
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	defer cancel()
	out, err := new(net.Dialer).DialContext(ctx, "tcp", to.String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer out.Close()
	control := http.NewResponseController(w)
	in, buffered, err := control.Hijack()
	if err != nil {
		http.Error(w, "the connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	defer in.Close()
	if _, err := io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	defer context.AfterFunc(r.Context(), func() { _, _ = in.Close(), out.Close() })() // its ticket is gone
	var both sync.WaitGroup
	both.Go(func() {
		h.copy(out, in, buffered.Reader, &h.sent)
	})
	h.copy(in, out, out, &h.got)
	both.Wait()
}

// copy copies what comes from one end to the other, and then closes both: a half of a connection between peers is of
// no use.
func (h *Head) copy(to, from net.Conn, reader io.Reader, count *atomic.Int64) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		_ = from.SetReadDeadline(time.Now().Add(asideAfter))
		n, err := reader.Read(buffer)
		if n > 0 {
			count.Add(int64(n))
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
