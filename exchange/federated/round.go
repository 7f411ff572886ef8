package federated

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/homomorphic"
	"github.com/starling-network/starling/exchange/secagg"
)

// Round is the coordinator's side of one round.
type Round struct {
	server    *secagg.Server
	encrypted *homomorphic.Sum // of vectors, whose keys server adds; nil: it adds the vectors
	entries   int
	phase     Phase
	roster    secagg.Roster
	expected  map[string]bool                   // names that answer in this phase
	answered  map[Phase]map[string]canon.Digest // digests of accepted messages
	survivors []int
	signed    []secagg.Confirmation
	sum       []uint32

	Dropouts map[Phase]int // owners that were expected in a phase and did not answer
	Faults   []string      // of owners whose messages were wrong
}

// NewRound begins a round of a job with vectors of a number of weights. Noise is a matter of owners, and not looked at.
func NewRound(job canon.Digest, a Announcement, c Conditions, weights int) (*Round, error) {
	t, err := c.terms(Session(job, a), weights+1)
	if err != nil {
		return nil, err
	}
	server, err := secagg.NewServer(t)
	if err != nil {
		return nil, err
	}
	r := &Round{server: server, entries: weights + 1, phase: Keys,
		answered: map[Phase]map[string]canon.Digest{Keys: {}}, Dropouts: map[Phase]int{}}
	if c.Encrypted {
		r.encrypted, err = homomorphic.NewSum(t.Session, weights+1)
	}
	return r, err
}

// maskedKey is the number of bytes of the key of a ciphertext under masks.
const maskedKey = 4 * homomorphic.KeySize

// Largest is the largest number of bytes of a message of a phase.
func (r *Round) Largest(p Phase) int {
	const share = 256 // a sealed pair of shares with its digests, or a signature, and their encoding
	switch {
	case p == Vectors && r.encrypted != nil:
		return maskedKey + homomorphic.Size(r.entries)
	case p == Vectors:
		return 4 * r.entries
	}
	return 1024 + share*secagg.MaxClients
}

// Phase is what the round waits for.
func (r *Round) Phase() Phase { return r.phase }

// Answers is the number of owners that have answered in a phase.
func (r *Round) Answers(p Phase) int { return len(r.answered[p]) }

// Answered reports whether an owner has answered in a phase.
func (r *Round) Answered(p Phase, name ed25519.PublicKey) bool {
	_, has := r.answered[p][string(name)]
	return has
}

// Missing is the number of owners whose message the phase still lacks. In the phase of keys it is 0: the caller knows
// whom it waits for.
func (r *Round) Missing() int { return max(0, len(r.expected)-len(r.answered[r.phase])) }

// index of an owner in the roster; -1: it is not in it.
func (r *Round) index(name ed25519.PublicKey) int {
	return slices.IndexFunc(r.roster, func(a secagg.Advert) bool { return bytes.Equal(a.Name, name) })
}

// Take takes the message of an owner in a phase. The caller has checked that it is of the owner. The same message twice
// changes nothing.
func (r *Round) Take(p Phase, name ed25519.PublicKey, body []byte) error {
	if d, has := r.answered[p][string(name)]; has {
		if d == Body(body) {
			return nil
		}
		return refuse("a second message of phase %s", p)
	}
	if p != r.phase || p != Keys && !r.expected[string(name)] {
		return refuse("a message of phase %s, where the round is in phase %s", p, r.phase)
	}
	err := r.take(p, name, body)
	if err != nil {
		if len(r.Faults) < secagg.MaxClients {
			r.Faults = append(r.Faults, err.Error())
		}
		var fault *secagg.Fault
		if p == Secrets && errors.As(err, &fault) { // the shares before the wrong one count
			r.answered[p][string(name)] = Body(body)
		}
		return err
	}
	r.answered[p][string(name)] = Body(body)
	return nil
}

func (r *Round) take(p Phase, name ed25519.PublicKey, body []byte) error {
	limit, i := r.Largest(p), r.index(name)
	switch p {
	case Keys:
		var a secagg.Advert
		if err := decode(body, limit, &a); err != nil {
			return err
		}
		if !bytes.Equal(a.Name, name) {
			return refuse("keys of another owner")
		}
		return r.server.Advertise(a)
	case Shares:
		var d secagg.Dealt
		if err := decode(body, limit, &d); err != nil {
			return err
		}
		return r.server.Deal(i, d)
	case Vectors:
		return r.vector(i, body)
	case Survivors:
		var c secagg.Confirmation
		if err := decode(body, limit, &c); err != nil {
			return err
		}
		if c.From != i {
			return refuse("the signature of another owner")
		}
		return r.server.Confirm(c)
	}
	var shares []secagg.Opened
	if err := decode(body, limit, &shares); err != nil {
		return err
	}
	return r.server.Open(i, shares)
}

// vector adds the message of phase Vectors.
func (r *Round) vector(i int, body []byte) error {
	if r.encrypted == nil {
		return r.server.Masked(i, body)
	}
	if len(body) < maskedKey {
		return refuse("a ciphertext with its key of %d bytes", len(body))
	}
	key, ciphertext := body[:maskedKey], body[maskedKey:]
	if err := r.encrypted.Check(ciphertext); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if err := r.server.Masked(i, key); err != nil {
		return err
	}
	return r.encrypted.Add(ciphertext)
}

// Close ends a phase: owners that have not answered have dropped out. The error says why the round has no sum.
func (r *Round) Close() (err error) {
	r.Dropouts[r.phase] = r.Missing()
	switch r.phase {
	case Keys:
		r.roster, err = r.server.CloseAdverts()
	case Shares:
		err = r.server.CloseDeals()
	case Vectors:
		r.survivors, err = r.server.CloseMasked()
	case Survivors:
		r.signed, err = r.server.CloseConfirm()
	case Secrets:
		if r.sum, err = r.server.Sum(); err == nil && r.encrypted != nil {
			r.sum, err = r.encrypted.Open(r.sum)
		}
	case Over:
		return refuse("the round is over")
	}
	if err != nil {
		return err
	}
	r.expected = map[string]bool{}
	for name := range r.answered[r.phase] {
		r.expected[name] = true
	}
	r.phase = r.phase.next()
	r.answered[r.phase] = map[string]canon.Digest{}
	return nil
}

// Reply is what an owner gets for its message of a phase; ready is false until the phase has ended.
func (r *Round) Reply(p Phase, name ed25519.PublicKey) (body []byte, ready bool, err error) {
	if !r.Answered(p, name) {
		return nil, false, refuse("no message of phase %s came from this owner", p)
	}
	if p == r.phase {
		return nil, false, nil
	}
	switch p {
	case Keys:
		return canon.MustMarshal(r.roster), true, nil
	case Shares:
		inbox, err := r.server.Inbox(r.index(name))
		return canon.MustMarshal(inbox), true, err
	case Vectors:
		return canon.MustMarshal(r.survivors), true, nil
	case Survivors:
		return canon.MustMarshal(r.signed), true, nil
	}
	return []byte{}, true, nil
}

// Cohort is the number of owners whose updates are in the sum.
func (r *Round) Cohort() int { return len(r.survivors) }

// Sum is the sum of the vectors of a round that is over.
func (r *Round) Sum() []uint32 { return r.sum }

// Plausible refuses a sum that no honest owners can have: one that is longer than updates that are clipped, with noise
// of a multiplier, or with other weights. equal says that each owner counts fully. It does not tell who sent what.
func (r *Round) Plausible(noise float64, equal bool) error {
	last := len(r.sum) - 1
	weight, most := int64(int32(r.sum[last])), int64(len(r.survivors))*fixedpoint.Unit
	if weight < 1 || weight > most || equal && weight != most {
		return refuse("the weights in the sum are %d, of at most %d: an owner sent another one", weight, most)
	}
	square := 0.0
	for _, v := range r.sum[:last] {
		square += float64(float64(int32(v)) * float64(int32(v)))
	}
	// the root of the entries bounds the norm of standard normals, but for 6 standard deviations of it
	deviation := float64(scale(noise, len(r.roster))) * math.Sqrt(float64(len(r.survivors)))
	longest := float64(weight) + float64(len(r.survivors)) + deviation*(math.Sqrt(float64(last))+6)
	if norm := math.Sqrt(square); norm > longest {
		return refuse("the sum is %.3g times as long as clipped updates can be: an owner sent a longer one", norm/longest)
	}
	return nil
}
