package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/node/fleet"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/provider/payee"
	"github.com/starling-network/starling/node/provider/peers"
	"github.com/starling-network/starling/protocol/registry"
)

// enlist registers, once the account has its stake, or says where it is now, and offers its work.
func (s *service) enlist(ctx context.Context) error {
	if err := s.chain.Ready(ctx); err != nil {
		return err
	}
	self, err := participantOf(s)
	o, failed := offered(ctx, s)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	p, err := s.chain.Registry.Participant(ctx, s.chain.Address())
	text, over := fleet.Standing(p)
	if text != "" {
		s.Say(text)
	}
	switch {
	case errors.Is(err, client.ErrNotFound) && s.Enrol != "":
		return fleet.Enrol(ctx, s.chain, s.Enrol, s.Say, self, o...)
	case over:
		s.barred = true
		return nil
	case errors.Is(err, client.ErrNotFound):
		askFaucet(ctx, s)
		if self.Earning, err = earns(ctx, s); err == nil && !self.Earning {
			err = s.awaitCoins(ctx)
		}
		if err != nil {
			return err
		}
	case err != nil:
		return err
	case p.Earning && !p.Jailed:
		self.Earning = true
		sayEarning(ctx, s, p)
	case p.Jailed:
		s.barred = true
		s.Say(fmt.Sprintf("the account was convicted and is given no work; the registry measures the machine, and from "+
			"block %d on"+
			" \"starling account stake unjail\" ends that", p.Convicted+s.jail(ctx)))
		return s.chain.Registry.UpdateAddresses(ctx, s.host.ID().String(), peers.Advertised(s.host.Addrs()))
	}
	if self.Earning { // a stake backs the seats of verifiers
		self.Roles, o, s.Verifies = self.Roles[:1], o[:1], false
	}
	before, err := s.chain.Market.Offers(ctx)
	if err != nil {
		return err
	}
	o = append(o, asked(s).Dropped(before, s.chain.Address())...)
	if err := s.chain.Registry.Enlist(ctx, self, o...); err != nil {
		return err
	}
	return payee.Name(ctx, s.chain, s.PayTo, s.Say)
}

// participantOf is how a service registers.
func participantOf(s *service) (p registry.Participant, err error) {
	tier, ok := registry.ParseTier(cmp.Or(s.Tier, registry.NoTier.String()))
	if !ok {
		return p, fmt.Errorf("worker: there is no tier %q: use none, bronze, silver or gold", s.Tier)
	}
	words, hardware := s.device.Declare(s.Hardware)
	hardware.Disk = uint64(s.store.Usage().Quota) >> 20
	return registry.Participant{
		Roles: roles(s), PeerID: s.host.ID().String(), Addrs: peers.Advertised(s.host.Addrs()),
		Device: words, Stake: s.Stake, Hardware: hardware, Tier: tier, Pool: s.Pool, Payee: registry.Payee{ID: s.PayTo},
	}, nil
}

// redeclare registers it again, in the middle of its work: another device computes its units.
func (s *service) redeclare() {
	s.working.Go(func() {
		p, err := participantOf(s)
		if err == nil {
			err = s.chain.Registry.Enlist(s.work, p)
		}
		if err != nil {
			s.log.Warn("cannot declare that another device computes", "err", err)
		}
	})
}

// jail is for how many blocks a conviction bars an account; 0 if that cannot be asked.
func (s *service) jail(ctx context.Context) int64 {
	p, _ := s.chain.Registry.Params(ctx)
	return p.JailBlocks
}

// awaitCoins returns when the account has the coins of its stake.
func (s *service) awaitCoins(ctx context.Context) error {
	blocks, err := s.chain.Blocks(ctx)
	if err != nil {
		return err
	}
	for said := false; ; said = true {
		have, err := s.chain.Coins.Balance(ctx, s.chain.Address())
		if err != nil || have >= s.Stake {
			return err
		}
		if !said {
			reserve, err := s.chain.Reserve(ctx)
			if err != nil {
				return err
			}
			s.Say(fmt.Sprintf("waits for coins: the account has %s ZEN, and needs %s to stake and %s for fees."+
				" An account with coins sends them with:\nstarling account send %s %s --home FOLDER-OF-THEIR-KEY --network %s",
				quantity.Amount(have), quantity.Amount(s.Stake), quantity.Amount(reserve), s.chain.Address(),
				quantity.Amount(s.Stake+reserve), s.RPC))
		}
		b, ok := <-blocks
		if !ok {
			return errors.Join(ctx.Err(), member.ErrClosed)
		}
		s.watch.Block(b.Height, b.Time)
	}
}
