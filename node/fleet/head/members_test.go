package head

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/endpoint"
)

// A head at another address than its tickets name does not begin: no machine would find it.
func TestAHeadStaysWhereItsTicketsSay(t *testing.T) {
	dir := t.TempDir()
	first, _, _, err := OpenFolder(dir, "10.0.0.1:7600", 1)
	if err != nil {
		t.Fatal(err)
	}
	again, members, _, err := OpenFolder(dir, "10.0.0.1:7600", 2)
	if err != nil || !again.Equal(first) || members.Count() != 2 {
		t.Errorf("%v, %d tickets", err, members.Count())
	}
	if _, _, _, err := OpenFolder(dir, "10.0.0.2:7600", 2); !errors.Is(err, ErrMoved) {
		t.Errorf("%v", err)
	}
}

// A ticket that cannot be read, or names another address, lets its machine in no more, and does not keep the head from
// the deletion of another.
func TestASpoiltTicketIsRevokedAlone(t *testing.T) {
	for name, text := range map[string]string{"torn": "starling-head-1.aa", "empty": "",
		"moved": NewTicket(make([]byte, 32), "10.0.0.9:1").String()} {
		t.Run(name, func(t *testing.T) {
			validator := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
			transport, err := endpoint.NewTransport(validator)
			if err != nil {
				t.Fatal(err)
			}
			s := opens(t, &Head{Validators: transport, Log: slog.New(slog.DiscardHandler)})
			spoilt, deleted := s.read(1), s.read(2)
			began, err := http.Get("http://" + s.member(spoilt).Address())
			if err != nil {
				t.Fatal(err)
			}
			defer began.Body.Close()
			if err := errors.Join(os.WriteFile(s.ticket(1), []byte(text), 0o600), os.Remove(s.ticket(2))); err != nil {
				t.Fatal(err)
			}
			skipped, err := s.members.Read()
			if err != nil || skipped == nil || !strings.Contains(skipped.Error(), "machine-1") {
				t.Errorf("skipped %v, %v", skipped, err)
			}
			for _, ticket := range []Ticket{spoilt, deleted} {
				if s.members.knows(ticket.Public()) {
					t.Error("a machine without a ticket is let in")
				}
			}
			if _, err := began.Body.Read(make([]byte, 1)); err == nil {
				t.Error("a connection outlives its ticket")
			}
		})
	}
}

// A head whose machine stopped while it wrote a ticket starts, with the others.
func TestAHeadStartsWithASpoiltTicket(t *testing.T) {
	const at = "10.0.0.1:7600"
	s := &site{t: t, dir: t.TempDir()}
	if _, _, _, err := OpenFolder(s.dir, at, 1); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.ticket(1), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, members, skipped, err := OpenFolder(s.dir, at, 2)
	if err != nil || skipped == nil || members.Count() != 1 {
		t.Errorf("skipped %v, %v, %d tickets", skipped, err, members.Count())
	}
}

// A ticket that cannot be written to its end is not there, and a part of one lets no machine in.
func TestTicketsAreWrittenWhole(t *testing.T) {
	const at = "10.0.0.1:7600"
	s := &site{t: t, dir: t.TempDir()}
	if _, _, _, err := OpenFolder(s.dir, at, 1); err != nil {
		t.Fatal(err)
	}
	part := s.ticket(2) + ".part"
	if err := os.MkdirAll(part+"/full", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := OpenFolder(s.dir, at, 2); err == nil {
		t.Error("a ticket is written under its name from the first byte on")
	}
	if _, err := os.Stat(s.ticket(2)); err == nil {
		t.Error("a ticket that was not written is there")
	}
	key := s.read(1)
	key.Secret[0]++
	if err := errors.Join(os.RemoveAll(part), os.WriteFile(part, []byte(key.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, members, _, err := OpenFolder(s.dir, at, 1)
	if err != nil || members.Count() != 1 || members.knows(key.Public()) {
		t.Errorf("%v, %d tickets", err, members.Count())
	}
}
