package federated

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated/wire"
)

// The methods in this file implement wire.Coordinator.

// Offer implements wire.Coordinator.
func (c *Coordinator) Offer() []byte { return c.offer }

// Join implements wire.Coordinator.
func (c *Coordinator) Join(name ed25519.PublicKey) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := hex.EncodeToString(name)
	if slices.Contains(c.state.Owners, is) {
		return nil
	}
	listed := func(k ed25519.PublicKey) bool { return k.Equal(name) }
	if c.opt.Allowed != nil && !slices.ContainsFunc(c.opt.Allowed, listed) {
		return fmt.Errorf("%w: it is not in the list of owners", wire.ErrUnknown)
	}
	if n := c.b.Job.Federated.Owners; len(c.state.Owners) >= n {
		return fmt.Errorf("%w: the job has all its %d owners", wire.ErrUnknown, n)
	}
	c.state.Owners = append(c.state.Owners, is)
	c.opt.Say(fmt.Sprintf("owner %.8s joins: %d of %d", is, len(c.state.Owners), c.b.Job.Federated.Owners))
	return c.save()
}

// joined refuses an owner that has not joined. The caller holds the lock.
func (c *Coordinator) joined(name ed25519.PublicKey) error {
	if !slices.Contains(c.state.Owners, hex.EncodeToString(name)) {
		return fmt.Errorf("%w: it has not joined", wire.ErrUnknown)
	}
	return nil
}

// under is the round under way, if it has a number. The caller holds the lock.
func (c *Coordinator) under(name ed25519.PublicKey, round uint32) (*federated.Round, error) {
	if err := c.joined(name); err != nil {
		return nil, err
	}
	if c.round == nil || c.now.Round != round {
		return nil, fmt.Errorf("%w: round %d", wire.ErrGone, round)
	}
	return c.round, nil
}

// Announced implements wire.Coordinator.
func (c *Coordinator) Announced(ctx context.Context, name ed25519.PublicKey, from uint32) ([]byte, error) {
	if err := c.until(ctx, func() bool {
		return c.joined(name) != nil || c.now.Over || c.round != nil && c.now.Round >= from &&
			c.round.Phase() == federated.Keys
	}); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	if err := c.joined(name); err != nil {
		return nil, err
	}
	if c.now.Over {
		c.told[string(name)] = true
		c.change()
	} else {
		c.seen[string(name)] = true
	}
	a := c.now
	a.Counted = c.variates.of[hex.EncodeToString(name)].counted
	return canon.MustMarshal(a), nil
}

// Model implements wire.Coordinator.
func (c *Coordinator) Model(name ed25519.PublicKey, round uint32) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.under(name, round)
	return c.weights, err
}

// Limit implements wire.Coordinator.
func (c *Coordinator) Limit(name ed25519.PublicKey, round uint32, p federated.Phase) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.under(name, round)
	if err != nil {
		return 0, err
	}
	if p != r.Phase() && !r.Answered(p, name) {
		return 0, fmt.Errorf("%w: it is in phase %s", wire.ErrGone, r.Phase())
	}
	return r.Largest(p), nil
}

// Take implements wire.Coordinator.
func (c *Coordinator) Take(name ed25519.PublicKey, round uint32, p federated.Phase, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.under(name, round)
	if err != nil {
		return err
	}
	if p == federated.Keys && !c.drawn(name) {
		return fmt.Errorf("%w: the owner is not drawn", wire.ErrRefused)
	}
	if err := r.Take(p, name, body); err != nil {
		if p == federated.Keys && !r.Answered(p, name) { // it is not waited for
			delete(c.seen, string(name))
		}
		return fmt.Errorf("%w: %w", wire.ErrRefused, err)
	}
	c.change()
	return nil
}

// Reply implements wire.Coordinator.
func (c *Coordinator) Reply(ctx context.Context, name ed25519.PublicKey, round uint32, p federated.Phase) (b []byte,
	err error) {
	ready := false
	if waited := c.until(ctx, func() bool {
		var r *federated.Round
		if r, err = c.under(name, round); err != nil {
			return true
		}
		b, ready, err = r.Reply(p, name)
		return ready || err != nil
	}); waited != nil {
		return nil, waited
	}
	c.mu.Unlock()
	return b, err
}
