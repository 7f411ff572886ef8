package secagg

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/secagg/shamir"
)

// phase is how far a party is in a sum.
type phase int

const (
	advertised phase = iota
	shared
	masked
	confirmed
	opened
)

// Client is the side of one client in one sum.
type Client struct {
	terms         Terms
	name          ed25519.PrivateKey
	seed          prg.Key
	channel, mask *ecdh.PrivateKey
	self          [shamir.Size]byte // seed of its own mask

	phase     phase
	roster    Roster
	digest    canon.Digest // of the roster
	index     int
	dealers   []int // whose masks are in its vector
	received  map[int][2][shamir.Size]byte
	survivors []int
	own       [2][shamir.Size]byte // the shares that it deals to itself
}

// NewClient begins a sum. The seed is random, secret and of this sum alone: all secrets of the client are derived from
// it.
func NewClient(t Terms, name ed25519.PrivateKey, seed prg.Key) (*Client, Advert, error) {
	c := &Client{terms: t, name: name, seed: seed}
	if err := t.Check(); err != nil {
		return nil, Advert{}, err
	}
	var err error
	if c.channel, err = ecdh.X25519().NewPrivateKey(c.secret("channel")); err != nil {
		return nil, Advert{}, err
	}
	if c.mask, err = ecdh.X25519().NewPrivateKey(c.secret("mask")); err != nil {
		return nil, Advert{}, err
	}
	c.self = [shamir.Size]byte(c.secret("self"))
	a := Advert{Name: name.Public().(ed25519.PublicKey), Channel: c.channel.PublicKey().Bytes(),
		Mask: c.mask.PublicKey().Bytes()}
	a.Signature = ed25519.Sign(name, a.signed(t.Session))
	return c, a, nil
}

// secret derives 32 bytes that can be shared.
func (c *Client) secret(purpose string) []byte {
	for i := byte(0); ; i++ {
		k := prg.Derive(c.seed[:], "starling/secagg/"+purpose, c.terms.Session[:], []byte{i})
		if shamir.Valid(k) {
			return k[:]
		}
	}
}

// in refuses a message of another phase: each is answered once.
func (c *Client) in(p phase) error {
	if c.phase != p {
		return refuse("a message of phase %d to a client in phase %d", p, c.phase)
	}
	return nil
}

// Share divides the secrets of the client among the clients of a roster.
func (c *Client) Share(r Roster) (d Dealt, err error) {
	if err := c.in(advertised); err != nil {
		return d, err
	}
	if err := c.terms.checkRoster(r); err != nil {
		return d, err
	}
	name := c.name.Public().(ed25519.PublicKey)
	c.index = slices.IndexFunc(r, func(a Advert) bool { return bytes.Equal(a.Name, name) })
	if c.index < 0 || !bytes.Equal(r[c.index].Mask, c.mask.PublicKey().Bytes()) ||
		!bytes.Equal(r[c.index].Channel, c.channel.PublicKey().Bytes()) {
		return d, refuse("the roster lacks the keys of this client")
	}
	if err := c.terms.known(r, all(len(r))); err != nil {
		return d, err
	}
	c.roster, c.digest, c.phase = slices.Clone(r), c.terms.digest(r), shared
	return c.deal()
}

// deal makes the shares of both secrets.
func (c *Client) deal() (d Dealt, err error) {
	n, session := len(c.roster), c.terms.Session
	var parts [2][][shamir.Size]byte
	for k, secret := range [][]byte{c.mask.Bytes(), c.self[:]} {
		key := prg.Derive(c.seed[:], "starling/secagg/shares", c.digest[:], []byte{byte(k)})
		if parts[k], err = shamir.Split([shamir.Size]byte(secret), Threshold(n), n, key); err != nil {
			return d, err
		}
	}
	d.SelfSum = seedDigest(session, c.self)
	for i := range n {
		a, b := parts[0][i], parts[1][i]
		d.Masks = append(d.Masks, shareDigest(session, maskKey, c.index, i, a))
		d.Selves = append(d.Selves, shareDigest(session, selfSeed, c.index, i, b))
		if i == c.index {
			c.own, d.Sealed = [2][shamir.Size]byte{a, b}, append(d.Sealed, nil)
			continue
		}
		seal, err := c.sealing(c.index, i)
		if err != nil {
			return d, err
		}
		d.Sealed = append(d.Sealed, seal.Seal(nil, make([]byte, seal.NonceSize()), slices.Concat(a[:], b[:]), nil))
	}
	return d, nil
}

// sealing is the cipher from one client to another, one of whom is this one. Its key has one message.
func (c *Client) sealing(from, to int) (cipher.AEAD, error) {
	other := from + to - c.index
	secret, err := agree(c.channel, c.roster[other].Channel)
	if err != nil {
		return nil, err
	}
	key := prg.Derive(secret, "starling/secagg/channel", c.digest[:], fmt.Appendf(nil, "%d/%d", from, to))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func agree(own *ecdh.PrivateKey, other []byte) ([]byte, error) {
	k, err := ecdh.X25519().NewPublicKey(other)
	if err != nil {
		return nil, refuse("a key that is none: %v", err)
	}
	secret, err := own.ECDH(k)
	if err != nil {
		return nil, refuse("a key that is none: %v", err)
	}
	return secret, nil
}

// pairKey is the key of the mask that two clients share.
func pairKey(roster canon.Digest, own *ecdh.PrivateKey, other []byte, a, b int) (prg.Key, error) {
	secret, err := agree(own, other)
	if err != nil {
		return prg.Key{}, err
	}
	return prg.Derive(secret, "starling/secagg/pair", roster[:], fmt.Appendf(nil, "%d/%d", min(a, b), max(a, b))), nil
}

// selfKey is the key of the mask that one client adds by itself.
func selfKey(roster canon.Digest, seed [shamir.Size]byte) prg.Key {
	return prg.Derive(seed[:], "starling/secagg/alone", roster[:])
}

// Mask takes what the others dealt, and returns the values under masks, 4 bytes for each, the lowest first. It changes
// values.
func (c *Client) Mask(inbox []Received, values []uint32) ([]byte, error) {
	if err := c.in(shared); err != nil {
		return nil, err
	}
	if len(values) != c.terms.Entries {
		return nil, refuse("a vector of %d entries, wanted %d", len(values), c.terms.Entries)
	}
	dealers := []int{c.index}
	for _, r := range inbox {
		dealers = append(dealers, r.From)
	}
	slices.Sort(dealers)
	if err := subset(len(c.roster), dealers); err != nil {
		return nil, err
	}
	if err := c.enough(dealers); err != nil {
		return nil, err
	}
	c.received = map[int][2][shamir.Size]byte{c.index: c.own}
	for _, r := range inbox {
		if err := c.receive(r); err != nil {
			return nil, err
		}
		key, err := pairKey(c.digest, c.mask, c.roster[r.From].Mask, c.index, r.From)
		if err != nil {
			return nil, err
		}
		if r.From > c.index {
			prg.Add(values, key)
		} else {
			prg.Subtract(values, key)
		}
	}
	prg.Add(values, selfKey(c.digest, c.self))
	c.dealers, c.phase = dealers, masked
	out := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(out[4*i:], v)
	}
	return out, nil
}

// enough refuses a set of clients with which the vector of one would be told from the sum.
func (c *Client) enough(of []int) error {
	if need := max(Threshold(len(c.roster)), c.terms.Cohort); len(of) < need {
		return refuse("%d clients are left of %d, wanted %d", len(of), len(c.roster), need)
	}
	return c.terms.known(c.roster, of)
}

// receive keeps the shares that a client dealt. Shares that are not those of its digests are left out: the dealer lied,
// and this client has none of it to open.
func (c *Client) receive(r Received) error {
	seal, err := c.sealing(r.From, c.index)
	if err != nil {
		return err
	}
	plain, err := seal.Open(nil, make([]byte, seal.NonceSize()), r.Sealed, nil)
	if err != nil || len(plain) != 2*shamir.Size {
		return nil
	}
	a, b := [shamir.Size]byte(plain[:shamir.Size]), [shamir.Size]byte(plain[shamir.Size:])
	if shareDigest(c.terms.Session, maskKey, r.From, c.index, a) == r.Mask &&
		shareDigest(c.terms.Session, selfSeed, r.From, c.index, b) == r.Self {
		c.received[r.From] = [2][shamir.Size]byte{a, b}
	}
	return nil
}

// Confirm signs the clients whose vectors are in the sum. A client confirms one set.
func (c *Client) Confirm(survivors []int) (Confirmation, error) {
	if err := c.in(masked); err != nil {
		return Confirmation{}, err
	}
	if err := subset(len(c.roster), survivors); err != nil {
		return Confirmation{}, err
	}
	for _, s := range survivors {
		if !slices.Contains(c.dealers, s) {
			return Confirmation{}, refuse("client %d is in the sum, and dealt nothing", s)
		}
	}
	if !slices.Contains(survivors, c.index) {
		return Confirmation{}, refuse("this client is not in the sum")
	}
	if err := c.enough(survivors); err != nil {
		return Confirmation{}, err
	}
	c.survivors, c.phase = slices.Clone(survivors), confirmed
	return Confirmation{c.index, ed25519.Sign(c.name, survivorsDigest(c.digest, survivors))}, nil
}

// Open gives a share of the seed of every survivor, and of the key of every other client that dealt: of no client both.
// It asks for the signatures of a threshold of clients under the same survivors.
func (c *Client) Open(by []Confirmation) ([]Opened, error) {
	if err := c.in(confirmed); err != nil {
		return nil, err
	}
	var signers []int
	for _, s := range by {
		signers = append(signers, s.From)
	}
	if err := subset(len(c.roster), signers); err != nil {
		return nil, err
	}
	message := survivorsDigest(c.digest, c.survivors)
	for _, s := range by {
		if !slices.Contains(c.survivors, s.From) || !ed25519.Verify(c.roster[s.From].Name, message, s.Signature) {
			return nil, refuse("client %d has not confirmed the survivors that this one did", s.From)
		}
	}
	if err := c.enough(signers); err != nil {
		return nil, err
	}
	c.phase = opened
	var out []Opened
	for _, d := range c.dealers {
		shares, ok := c.received[d]
		switch {
		case !ok:
		case slices.Contains(c.survivors, d):
			out = append(out, Opened{d, shares[1]})
		default:
			out = append(out, Opened{d, shares[0]})
		}
	}
	return out, nil
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
