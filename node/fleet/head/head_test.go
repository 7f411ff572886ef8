package head

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/node/provider/peers"
	"github.com/starling-network/starling/protocol/registry"
)

func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// site is a head with two tickets, and its folder.
type site struct {
	t       *testing.T
	dir, at string
	members *Members
}

// opens starts a head. Its Members are those of its folder.
func opens(t *testing.T, h *Head) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: t.TempDir(), at: l.Addr().String()}
	key, members, _, err := OpenFolder(s.dir, s.at, 2)
	if err != nil {
		t.Fatal(err)
	}
	h.Members, s.members = members, members
	secure, err := h.Listener(l, key)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(secure) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

func (s *site) ticket(n int) string { return filepath.Join(s.dir, dirTickets, fmt.Sprint(machine, n)) }

// member is the link of a ticket.
func (s *site) member(ticket Ticket) *Link {
	s.t.Helper()
	l, err := Dial(s.t.Context(), ticket)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *site) read(n int) Ticket {
	s.t.Helper()
	ticket, err := ReadTicket(s.ticket(n))
	if err != nil {
		s.t.Fatal(err)
	}
	return ticket
}

// A machine with a ticket gets its invitation and answers of validators. Without one it gets neither, nor does a head
// with another key get anything of a machine; and a ticket that is deleted ends the connections of its machine alone.
func TestTicketsLetIn(t *testing.T) {
	validator := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stays" {
			fmt.Fprint(w, "a block")
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	transport, err := endpoint.NewTransport(validator)
	if err != nil {
		t.Fatal(err)
	}
	s := opens(t, &Head{Validators: transport, Log: slog.New(slog.DiscardHandler),
		Invitation: func(name string) (string, error) { return map[string]string{"machine-1": "come in"}[name], nil }})
	ask := func(l *Link, path string) (string, error) {
		r, err := http.Get("http://" + l.Address() + path)
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return string(text), err
	}
	first, second := s.member(s.read(1)), s.member(s.read(2))
	for _, c := range []struct {
		l    *Link
		want string
	}{{first, "come in"}, {second, ""}} {
		if text, err := c.l.Invitation(t.Context()); err != nil || text != c.want {
			t.Errorf("the invitation is %q, %v, want %q", text, err, c.want)
		}
		if text, err := ask(c.l, "/block"); err != nil || text != "a block" {
			t.Errorf("%q, %v", text, err)
		}
	}
	stranger := s.read(1)
	stranger.Secret[0]++
	if text, err := s.member(stranger).Invitation(t.Context()); err == nil {
		t.Errorf("a stranger gets %q", text)
	}
	if text, err := ask(s.member(stranger), "/block"); err == nil {
		t.Errorf("a stranger gets %q", text)
	}
	if r, err := http.Get("http://" + s.at + "/block"); err == nil && r.StatusCode == http.StatusOK {
		t.Error("without TLS the head answers")
	}
	other := s.read(1)
	other.Head[0]++
	if _, err := s.member(other).Invitation(t.Context()); !errors.Is(err, errStranger) {
		t.Errorf("of another head: %v", err)
	}
	ended := make(chan error)
	go func() { _, err := ask(first, "/stays"); ended <- err }()
	if err := os.Remove(s.ticket(1)); err != nil {
		t.Fatal(err)
	}
	if skipped, err := s.members.Read(); skipped != nil || err != nil {
		t.Fatal(skipped, err)
	}
	<-ended
	if text, err := ask(first, "/block"); err == nil && text == "a block" {
		t.Error("a machine gets answers without its ticket")
	}
	if text, err := ask(second, "/block"); err != nil || text != "a block" {
		t.Errorf("the other machine: %q, %v", text, err)
	}
	if why := first.Cut(); why == nil || !strings.Contains(why.Error(), "does not know the ticket") {
		t.Errorf("a machine whose ticket is deleted is told %v", why)
	}
	if why := second.Cut(); why != nil {
		t.Errorf("the other machine is told %v", why)
	}
}

// Only whole tickets are read, and reading one changes nothing.
func FuzzTicket(f *testing.F) {
	f.Add(NewTicket(make([]byte, 32), "10.0.0.1:7600").String())
	f.Add(ticketPrefix)
	f.Fuzz(func(t *testing.T, text string) {
		ticket, err := ParseTicket(text)
		if err == nil && ticket.String() != strings.TrimSpace(text) || err != nil && !errors.Is(err, ErrTicket) {
			t.Errorf("%q: %+v, %v", text, ticket, err)
		}
	})
}

// Questions reach a validator, also when the first one is gone, and with their bodies; an event stream is passed on.
func TestQuestionsReachAValidator(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	asked := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "websocket" {
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Connection", "Upgrade")
			w.WriteHeader(http.StatusSwitchingProtocols)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "event\n")
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RequestURI(), body)
	}))
	transport, err := endpoint.NewTransport(gone.URL + "," + asked)
	if err != nil {
		t.Fatal(err)
	}
	s := opens(t, &Head{Validators: transport, Log: slog.New(slog.DiscardHandler)})
	at := "http://" + s.member(s.read(1)).Address()
	r, err := http.Post(at+"/broadcast?a=1", "application/json", strings.NewReader("a transaction"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || string(text) != "POST /broadcast?a=1 a transaction" {
		t.Errorf("%q, %v", text, err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /websocket HTTP/1.1\r\nHost: head\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	from := bufio.NewReader(conn)
	if r, err = http.ReadResponse(from, nil); err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", r, err)
	}
	if line, err := from.ReadString('\n'); err != nil || line != "event\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// registered are participants of a network without a chain.
type registered []registry.Participant

func (r registered) Participants(context.Context) ([]registry.Participant, error) { return r, nil }

// A member is connected to addresses at which participants are registered, and to nothing else that the head reaches.
func TestTargets(t *testing.T) {
	const id = "/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"
	h := &Head{Log: slog.New(slog.DiscardHandler), At: peers.New(registered{
		{Addrs: []string{"/ip4/11.0.0.1/tcp/4001" + id, "/ip4/10.0.0.9/tcp/22" + id, "/ip4/127.0.0.1/tcp/80" + id}},
		{Addrs: []string{"/ip4/169.254.169.254/tcp/80" + id, "/ip6/2001:db8::1/tcp/4001" + id,
			"/ip4/0.0.0.0/tcp/80" + id}}}).At}
	for text, want := range map[string]bool{
		"11.0.0.1:4001": true, "[::ffff:11.0.0.1]:4001": true, "[2001:db8::1]:4001": true, "11.0.0.1:4002": false,
		"11.0.0.2:4001": false, "10.0.0.9:22": false, "127.0.0.1:80": false, "169.254.169.254:80": false,
		"0.0.0.0:80": false, "localhost:80": false, "11.0.0.1": false, "": false,
	} {
		if _, err := h.target(text); (err == nil) != want || err != nil && !errors.Is(err, errTarget) {
			t.Errorf("%s: %v", text, err)
		}
	}
	h.Private = true
	for text, want := range map[string]bool{"10.0.0.9:22": true, "127.0.0.1:80": false, "169.254.169.254:80": false} {
		if _, err := h.target(text); (err == nil) != want {
			t.Errorf("with addresses of private networks, %s: %v", text, err)
		}
	}
	s := opens(t, h)
	conn, err := net.Dial("tcp", s.member(s.read(2)).Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n")
	if r, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || r.StatusCode != http.StatusForbidden {
		t.Errorf("%v, %v", r, err)
	}
}

// A member has at most some tunnels at a time, from all its addresses together, so it does not keep others from theirs,
// which may share an address with it.
func TestTunnelsAreShared(t *testing.T) {
	h, greedy, other := new(Head), "the key of a member", "the key of another"
	for range maxOfOne {
		if !h.enter(greedy) {
			t.Fatal("a tunnel within the limit is refused")
		}
	}
	if h.enter(greedy) || !h.enter(other) {
		t.Error("one member takes the tunnels of another")
	}
	h.leave(greedy)
	if n, _, _ := h.Traffic(); n != maxOfOne || !h.enter(greedy) {
		t.Errorf("%d tunnels, and none is free where one ended", n)
	}
}
