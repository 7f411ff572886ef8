package federated

import (
	"crypto/ed25519"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/discrete"
	"github.com/starling-network/starling/exchange/homomorphic"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/secagg"
)

// Member is an owner's side of one round.
type Member struct {
	client  *secagg.Client
	session canon.Digest
	seed    prg.Key
	values  []uint32
	noise   float64 // multiplier
	encrypt bool
	owners  int // in the roster
}

// Conditions are those under which an owner takes part in a round.
type Conditions struct {
	Cohort int      // the least number of owners in the sum
	Known  [][]byte // names of which as many have to take part; nil: any
	Noise  float64  // multiplier of the clipping norm; 0: none

	// Encrypted: vectors are ciphertexts, and the masks hide their keys.
	Encrypted bool
}

// terms are those of the sum of vectors, or of their keys, of a number of entries with the weight.
func (c Conditions) terms(session canon.Digest, entries int) (secagg.Terms, error) {
	t := secagg.Terms{Session: session, Cohort: c.Cohort, Entries: entries, Known: c.Known}
	if !c.Encrypted {
		return t, nil
	}
	t.Entries = homomorphic.KeySize
	return t, homomorphic.Fits(entries)
}

// NewMember begins a round with an update on the grid (fixedpoint.Encode), and returns the message of the first phase.
// The seed is random, secret and of this round alone. Mask changes values.
func NewMember(job canon.Digest, a Announcement, c Conditions, name ed25519.PrivateKey, seed prg.Key,
	values []uint32) (*Member, []byte, error) {
	t, err := c.terms(Session(job, a), len(values))
	if err != nil {
		return nil, nil, err
	}
	client, advert, err := secagg.NewClient(t, name, seed)
	if err != nil {
		return nil, nil, err
	}
	return &Member{client: client, session: t.Session, seed: seed, values: values, noise: c.Noise, encrypt: c.Encrypted},
		canon.MustMarshal(advert), nil
}

// Answer is the message of the phase after p, made from the reply to that of p.
func (m *Member) Answer(p Phase, reply []byte) ([]byte, error) {
	limit := p.LargestReply()
	switch p {
	case Keys:
		var roster secagg.Roster
		if err := decode(reply, limit, &roster); err != nil {
			return nil, err
		}
		d, err := m.client.Share(roster)
		if err != nil {
			return nil, err
		}
		m.owners = len(roster)
		return canon.Marshal(d)
	case Shares:
		var inbox []secagg.Received
		if err := decode(reply, limit, &inbox); err != nil {
			return nil, err
		}
		if s := scale(m.noise, m.owners); s > 0 { // not to the weight, which is the same for all
			key := prg.Derive(m.seed[:], "starling/federated/noise")
			if err := discrete.Add(m.values[:len(m.values)-1], s, key); err != nil {
				return nil, err
			}
		}
		return m.hide(inbox)
	case Vectors:
		var survivors []int
		if err := decode(reply, limit, &survivors); err != nil {
			return nil, err
		}
		c, err := m.client.Confirm(survivors)
		if err != nil {
			return nil, err
		}
		return canon.Marshal(c)
	case Survivors:
		var by []secagg.Confirmation
		if err := decode(reply, limit, &by); err != nil {
			return nil, err
		}
		opened, err := m.client.Open(by)
		if err != nil {
			return nil, err
		}
		return canon.Marshal(opened)
	}
	return nil, refuse("nothing follows phase %s", p)
}

// hide is the message of phase Vectors: the values under masks, or the key of their ciphertext under masks, and the
// ciphertext after it.
func (m *Member) hide(inbox []secagg.Received) ([]byte, error) {
	if !m.encrypt {
		return m.client.Mask(inbox, m.values)
	}
	seed := prg.Derive(m.seed[:], "starling/federated/encryption")
	key, ciphertext, err := homomorphic.Encrypt(m.session, m.values, seed)
	if err != nil {
		return nil, err
	}
	masked, err := m.client.Mask(inbox, key)
	if err != nil { // a second ciphertext under the key is not given away
		return nil, err
	}
	return append(masked, ciphertext...), nil
}
