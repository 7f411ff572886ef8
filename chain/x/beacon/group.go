package beacon

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/threshold"
)

// Message is the text that a group signs in the votes for a block. It binds the block, the beacon of the block before,
// and the group. If another block is decided at the height, its signature differs.
func Message(chainID string, height int64, previous canon.Digest, hash []byte, roster canon.Digest) []byte {
	d := canon.Sum("starling/beacon/message/1", []byte(chainID), number(height), previous[:], hash, roster[:])
	return d[:]
}

// Value returns the beacon of the block after the given height, from the signature over the votes of that height.
func Value(chainID string, height int64, signature []byte) canon.Digest {
	return canon.Sum("starling/beacon/2", []byte(chainID), number(height), signature)
}

// SecretOf derives the secret with which a validator takes part in groups.
func SecretOf(private ed25519.PrivateKey) threshold.Secret {
	return threshold.NewSecret(private.Seed())
}

// known caches results about groups. It affects only speed.
type known struct {
	mu        sync.Mutex
	verifiers map[canon.Digest]*threshold.Verifier
	shares    map[canon.Digest]threshold.Shares
	read      map[canon.Digest]*threshold.Complaint // results of review, by reader
	signed    map[[sha256.Size]byte]bool            // valid signatures
}

// Limits of the caches. A full cache is emptied.
const (
	mostGroups = 64
	mostRead   = 1024
	mostSigned = 4096
)

func remember[K comparable, V any](m *map[K]V, key K, value V, most int) {
	if *m == nil || len(*m) >= most {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

func (g group) id() canon.Digest {
	roster := g.Roster.ID()
	return canon.Sum("starling/beacon/group/1", roster[:], g.Public)
}

// signature is the key of a signature in the cache; member -1 is the group.
func signature(id canon.Digest, member int, message, bytes []byte) [sha256.Size]byte {
	return canon.Sum("starling/beacon/signed", id[:], number(int64(member)), message, bytes)
}

// verifier returns the verifier of a group's partial signatures.
func (k *Keeper) verifier(ctx context.Context, g group) (*threshold.Verifier, error) {
	id := g.id()
	if v := k.known.verifiers[id]; v != nil {
		return v, nil
	}
	deals, err := k.dealt(ctx, g.Roster.Epoch, g.Dealers)
	if err != nil {
		return nil, err
	}
	v, err := threshold.NewVerifier(g.Roster, deals)
	if err == nil {
		remember(&k.known.verifiers, id, v, mostGroups)
	}
	return v, err
}

// checkPartials reports whether the partial signatures of a validator are valid.
func (k *Keeper) checkPartials(ctx context.Context, g group, at int, message, partials []byte) (bool, error) {
	k.known.mu.Lock()
	defer k.known.mu.Unlock()
	key := signature(g.id(), at, message, partials)
	if k.known.signed[key] {
		return true, nil
	}
	v, err := k.verifier(ctx, g)
	if err != nil || !v.Check(at, message, partials) {
		return false, err
	}
	remember(&k.known.signed, key, true, mostSigned)
	return true, nil
}

// message returns the text that a group signs in the votes of a height for the block with a hash.
func (k *Keeper) message(ctx context.Context, g group, height int64, hash []byte) ([]byte, error) {
	previous, err := k.At(ctx, height-1)
	return Message(k.chainID(ctx), height, previous, hash, g.Roster.ID()), err
}

// sign makes the partial signatures of a validator. A member that got a wrong share and did not complain in time has
// none.
func (k *Keeper) sign(ctx context.Context, g group, at int, secret threshold.Secret, message []byte) ([]byte, error) {
	k.known.mu.Lock()
	defer k.known.mu.Unlock()
	id := g.id()
	own := canon.Sum("starling/beacon/own", id[:], secret.Public())
	shares, ok := k.known.shares[own]
	if !ok {
		deals, err := k.dealt(ctx, g.Roster.Epoch, g.Dealers)
		if err != nil {
			return nil, err
		}
		if shares, err = threshold.Own(secret, g.Roster, g.Dealers, deals, at); err != nil &&
			!errors.Is(err, threshold.ErrInvalid) {
			return nil, err
		}
		remember(&k.known.shares, own, shares, mostGroups)
	}
	partials, err := shares.Sign(message)
	if err != nil {
		return nil, err
	}
	remember(&k.known.signed, signature(id, at, message, partials), true, mostSigned)
	if g.Roster.Threshold == 1 && len(partials) == threshold.SignatureSize { // it is also the group's signature
		remember(&k.known.signed, signature(id, -1, message, partials), true, mostSigned)
	}
	return partials, nil
}

// combine computes the signature of a group from the partial signatures; nil if there are too few. It does not depend
// on which members signed.
func (k *Keeper) combine(ctx context.Context, g group, message []byte, partials []threshold.Partial) ([]byte, error) {
	s := threshold.Combine(g.Roster, partials)
	if s == nil {
		return nil, nil
	}
	k.known.mu.Lock()
	fast := k.known.signed[signature(g.id(), -1, message, s)]
	k.known.mu.Unlock()
	if fast || threshold.Verify(g.Public, message, s) {
		return s, nil
	}
	var good []threshold.Partial // some partial signature is invalid
	for _, p := range partials {
		ok, err := k.checkPartials(ctx, g, p.Member, message, p.Bytes)
		if err != nil {
			return nil, err
		}
		if ok {
			good = append(good, p)
		}
	}
	if s = threshold.Combine(g.Roster, good); s != nil && !threshold.Verify(g.Public, message, s) {
		return nil, nil
	}
	return s, nil
}

// take adds a validator's next message of the current ceremony to its ballot.
func (k ceremonies) take(ctx context.Context, b *ballot, validator []byte, secret threshold.Secret) error {
	public := secret.Public()
	announced, err := k.members.Get(ctx, validator)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	if string(announced) != string(public) {
		b.Key = public
	}
	c, ok, err := item(ctx, k.ceremony)
	if err != nil || !ok {
		return err
	}
	at := member(c.Roster, validator)
	if at < 0 || string(c.Roster.Members[at].Key) != string(public) {
		return nil
	}
	switch {
	case c.Closed == 0 && c.Deals[at] == none:
		d := threshold.NewDeal(secret, c.Roster, at)
		b.Epoch, b.Deal = c.Roster.Epoch, &d
	case c.Closed != 0 && !c.Heard[at]:
		b.Epoch = c.Roster.Epoch
		b.Complaint, err = k.review(ctx, c, at, secret)
		b.Done = b.Complaint == nil
	}
	return err
}

// review checks the deals of a ceremony, and returns the first complaint that a member has.
func (k ceremonies) review(ctx context.Context, c ceremony, at int,
	secret threshold.Secret) (*threshold.Complaint, error) {
	k.known.mu.Lock()
	defer k.known.mu.Unlock()
	roster := c.Roster.ID()
	for i, state := range c.Deals {
		if state != right {
			continue
		}
		d, err := k.deals.Get(ctx, collections.Join(c.Roster.Epoch, uint64(i)))
		if err != nil {
			return nil, err
		}
		key := canon.Sum("starling/beacon/read", roster[:], canon.MustMarshal(d), number(int64(at)), secret.Public())
		complaint, ok := k.known.read[key]
		if !ok {
			if _, complaint, err = d.Read(secret, c.Roster, i, at); err != nil {
				return nil, err
			}
			remember(&k.known.read, key, complaint, mostRead)
		}
		if complaint != nil {
			return complaint, nil
		}
	}
	return nil, nil
}

// tire removes the groups if the last patience blocks had no beacon: the next ceremony makes a new group.
func (k *Keeper) tire(ctx context.Context, height int64) error {
	for h := height; h > height-patience; h-- {
		v, err := k.At(ctx, h)
		if err != nil || h <= 1 || !v.IsZero() {
			return err
		}
	}
	return k.groups.Remove(ctx)
}

// isolated runs f so that an error about a vote does not stop the blocks: if f fails, the state stays as it was.
func (k *Keeper) isolated(ctx sdk.Context, what string, f func(context.Context) error) {
	if err := adapter.Isolate(ctx, f); err != nil {
		ctx.Logger().Error("beacon: "+what, "error", err)
	}
}

func (k *Keeper) chainID(ctx context.Context) string { return sdk.UnwrapSDKContext(ctx).ChainID() }
