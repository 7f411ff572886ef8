package secagg

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/secagg/shamir"
)

// Server is the side of the party that adds.
type Server struct {
	terms  Terms
	phase  phase
	roster Roster
	digest canon.Digest

	dealt     map[int]Dealt
	sum       []uint32
	masked    map[int]bool
	survivors []int
	signed    map[int]Confirmation
	opened    map[int]map[int][shamir.Size]byte // shares by client, and by the client that opened them
	openers   map[int]bool
}

// Fault is an error that one client is the cause of: the sum succeeds without it.
type Fault struct {
	Name []byte // of the client
	Why  string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("secure aggregation: client %.8x %s", f.Name, f.Why)
}

// NewServer begins a sum.
func NewServer(t Terms) (*Server, error) {
	return &Server{terms: t, dealt: map[int]Dealt{}, masked: map[int]bool{}, signed: map[int]Confirmation{},
		opened: map[int]map[int][shamir.Size]byte{}, openers: map[int]bool{}}, t.Check()
}

// Advertise takes the keys of a client; a second message of one changes nothing.
func (s *Server) Advertise(a Advert) error {
	if err := s.at(advertised, 0); err != nil {
		return err
	}
	if err := a.check(s.terms.Session); err != nil {
		return err
	}
	at, there := slices.BinarySearchFunc(s.roster, a, func(x, y Advert) int { return bytes.Compare(x.Name, y.Name) })
	switch {
	case there:
		return refuse("client %.8x has advertised", a.Name)
	case len(s.roster) == MaxClients:
		return refuse("there are %d clients", MaxClients)
	}
	s.roster = slices.Insert(s.roster, at, a)
	return nil
}

// at refuses a message of another phase, or of a client that is not in the roster.
func (s *Server) at(p phase, from int) error {
	if s.phase != p || p != advertised && (from < 0 || from >= len(s.roster)) {
		return refuse("a message of phase %d from client %d to a server in phase %d", p, from, s.phase)
	}
	return nil
}

// CloseAdverts ends the first phase: the roster is what all clients get.
func (s *Server) CloseAdverts() (Roster, error) {
	if len(s.roster) < s.terms.Cohort {
		return nil, refuse("%d clients, wanted %d", len(s.roster), s.terms.Cohort)
	}
	s.digest, s.phase = s.terms.digest(s.roster), shared
	return slices.Clone(s.roster), nil
}

// Deal takes the shares of a client.
func (s *Server) Deal(from int, d Dealt) error {
	if err := s.at(shared, from); err != nil {
		return err
	}
	if _, twice := s.dealt[from]; twice {
		return refuse("client %d has dealt", from)
	}
	if err := d.check(len(s.roster), from); err != nil {
		return err
	}
	s.dealt[from] = d
	return nil
}

// CloseDeals ends the second phase.
func (s *Server) CloseDeals() error { return s.close(masked, len(s.dealt)) }

// close begins a phase if enough clients are left.
func (s *Server) close(next phase, left int) error {
	if need := max(Threshold(len(s.roster)), s.terms.Cohort); s.phase != next-1 || left < need {
		return refuse("%d clients are left of %d, wanted %d", left, len(s.roster), need)
	}
	s.phase = next
	return nil
}

// Inbox is what a client that dealt gets of the others.
func (s *Server) Inbox(to int) (inbox []Received, err error) {
	if _, dealt := s.dealt[to]; !dealt || s.phase < masked {
		return nil, refuse("client %d has dealt nothing", to)
	}
	for from := range s.roster {
		if d, ok := s.dealt[from]; ok && from != to {
			inbox = append(inbox, Received{from, d.Sealed[to], d.Masks[to], d.Selves[to]})
		}
	}
	return inbox, nil
}

// Masked adds the masked vector of a client.
func (s *Server) Masked(from int, b []byte) error {
	if err := s.at(masked, from); err != nil {
		return err
	}
	if _, dealt := s.dealt[from]; !dealt || s.masked[from] || len(b) != 4*s.terms.Entries {
		return refuse("a vector of %d bytes from client %d, wanted one of %d", len(b), from, 4*s.terms.Entries)
	}
	if s.sum == nil {
		s.sum = make([]uint32, s.terms.Entries)
	}
	for i := range s.sum {
		s.sum[i] += binary.LittleEndian.Uint32(b[4*i:])
	}
	s.masked[from] = true
	return nil
}

// CloseMasked ends the third phase: the survivors are the clients whose vectors are in the sum.
func (s *Server) CloseMasked() ([]int, error) {
	if err := s.close(confirmed, len(s.masked)); err != nil {
		return nil, err
	}
	for i := range s.roster {
		if s.masked[i] {
			s.survivors = append(s.survivors, i)
		}
	}
	return slices.Clone(s.survivors), nil
}

// Confirm takes the signature of a survivor.
func (s *Server) Confirm(c Confirmation) error {
	if err := s.at(confirmed, c.From); err != nil {
		return err
	}
	if !s.masked[c.From] ||
		!ed25519.Verify(s.roster[c.From].Name, survivorsDigest(s.digest, s.survivors), c.Signature) {
		return refuse("client %d has not signed the survivors", c.From)
	}
	s.signed[c.From] = c
	return nil
}

// CloseConfirm ends the fourth phase: each client that gave one gets all signatures.
func (s *Server) CloseConfirm() (by []Confirmation, err error) {
	if err := s.close(opened, len(s.signed)); err != nil {
		return nil, err
	}
	for i := range s.roster {
		if c, ok := s.signed[i]; ok {
			by = append(by, c)
		}
	}
	return by, nil
}

// Open takes the shares that a client opens. Shares that are not those that were dealt are an error, and a Fault of the
// client; those before them count.
func (s *Server) Open(from int, shares []Opened) error {
	if err := s.at(opened, from); err != nil {
		return err
	}
	if _, signed := s.signed[from]; !signed || s.openers[from] || len(shares) > len(s.roster) {
		return refuse("client %d opens %d shares", from, len(shares))
	}
	s.openers[from] = true
	for _, o := range shares {
		d, dealt := s.dealt[o.Of]
		if !dealt {
			return s.fault(from, "opened a share of a client that dealt none")
		}
		kind, want := maskKey, d.Masks
		if s.masked[o.Of] {
			kind, want = selfSeed, d.Selves
		}
		if shareDigest(s.terms.Session, kind, o.Of, from, o.Share) != want[from] {
			return s.fault(from, "opened a share that it was not dealt")
		}
		if s.opened[o.Of] == nil {
			s.opened[o.Of] = map[int][shamir.Size]byte{}
		}
		s.opened[o.Of][from] = o.Share
	}
	return nil
}

func (s *Server) fault(client int, why string) error { return &Fault{s.roster[client].Name, why} }

// Sum removes the masks, and returns the sum of the vectors of the survivors modulo 2^32. The error is a Fault where a
// client dealt shares that do not give its secret.
func (s *Server) Sum() ([]uint32, error) {
	if s.phase != opened {
		return nil, refuse("a server in phase %d has no sum", s.phase)
	}
	sum := slices.Clone(s.sum)
	for i := range s.roster {
		d, dealt := s.dealt[i]
		if !dealt {
			continue
		}
		secret, err := s.recover(i)
		if err != nil {
			return nil, err
		}
		if s.masked[i] {
			if seedDigest(s.terms.Session, secret) != d.SelfSum {
				return nil, s.fault(i, "dealt shares of another seed")
			}
			prg.Subtract(sum, selfKey(s.digest, secret))
			continue
		}
		if err := s.withoutPairs(sum, i, secret); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// recover is the secret of a client from the shares that were opened.
func (s *Server) recover(of int) (secret [shamir.Size]byte, err error) {
	need := Threshold(len(s.roster))
	var from []int
	var shares [][shamir.Size]byte
	for i := range s.roster {
		if share, ok := s.opened[of][i]; ok && len(from) < need {
			from, shares = append(from, i), append(shares, share)
		}
	}
	if len(from) < need {
		return secret, s.missing(of, len(from), need)
	}
	weights, err := shamir.Weights(from)
	if err != nil {
		return secret, err
	}
	return shamir.Combine(shares, weights), nil
}

// missing is why a secret cannot be recovered: a client that dealt wrong shares, if enough others opened theirs.
func (s *Server) missing(of, have, need int) error {
	if len(s.openers) >= need && have < need {
		return s.fault(of, fmt.Sprintf("dealt right shares to %d clients, wanted %d", have, need))
	}
	return refuse("%d shares of client %d are opened, wanted %d", have, of, need)
}

// withoutPairs removes the masks that the survivors share with a client that dropped out.
func (s *Server) withoutPairs(sum []uint32, gone int, secret [shamir.Size]byte) error {
	own, err := ecdh.X25519().NewPrivateKey(secret[:])
	if err != nil || !bytes.Equal(own.PublicKey().Bytes(), s.roster[gone].Mask) {
		return s.fault(gone, "dealt shares of another key")
	}
	for _, i := range s.survivors {
		key, err := pairKey(s.digest, own, s.roster[i].Mask, gone, i)
		if err != nil {
			return err
		}
		if gone > i { // the survivor added it
			prg.Subtract(sum, key)
		} else {
			prg.Add(sum, key)
		}
	}
	return nil
}
