package provider

import (
	"cmp"
	"context"
	"fmt"

	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/faucet"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// earns reports whether the account, which is not registered, is to earn its stake: it trains, has not the coins of a
// stake, and the network lets it.
func earns(ctx context.Context, s *service) (bool, error) {
	if !s.Earn || s.Class != crew.Worker || s.Pool != "" || s.Tier != "" && s.Tier != registry.NoTier.String() {
		return false, nil
	}
	params, err := s.chain.Registry.Params(ctx)
	if err != nil || params.Earning.Most == 0 {
		return false, err
	}
	have, err := s.chain.Coins.Balance(ctx, s.chain.Address())
	if err != nil || have >= s.Stake {
		return false, err
	}
	s.Say(fmt.Sprintf("the account has %s of the %s ZEN of its stake: it joins without one, and earns it. An account "+
		"with coins may send it some, and \"starling account stake add\" stakes them; --earn-stake=false waits for that",
		quantity.Amount(have), quantity.Amount(s.Stake)))
	sayEarning(ctx, s, registry.Participant{})
	return true, nil
}

// askFaucet asks the faucet, if one is named, for coins of an account that has not those of its stake. A faucet that
// gives none changes nothing: a worker earns its stake then.
func askFaucet(ctx context.Context, s *service) {
	if s.Faucet == "" {
		return
	}
	have, err := s.chain.Coins.Balance(ctx, s.chain.Address())
	if err == nil && have < s.Stake {
		var g faucet.Gift
		if g, err = faucet.Ask(ctx, s.Faucet, s.chain.Address()); err == nil {
			s.Say(fmt.Sprintf("the faucet gave %s ZEN", quantity.Amount(g.Uzen)))
		}
	}
	if err != nil {
		s.Say("no coins of the faucet: " + err.Error())
	}
}

// sayEarning says how far a worker is with earning its stake, and lets its machine be measured, without which it gets
// no place.
func sayEarning(ctx context.Context, s *service, p registry.Participant) {
	params, err := s.chain.Registry.Params(ctx)
	if err != nil {
		s.log.Warn("cannot read what a stake is earned by", "err", err)
		return
	}
	e := params.Earning
	s.Say(fmt.Sprintf("what it earns is kept as its stake, %s of %s ZEN, until that is reached and %d of %d audits in a "+
		"row are passed; all its units are audited, and wrong work loses all of it", quantity.Amount(p.Stake),
		quantity.Amount(e.Stake), min(p.Passed, e.Audits), e.Audits))
	if !s.Measure {
		s.Measure = true
		s.Say("its machine is measured, although --measure is false: a worker without a stake is given work after that")
	}
}

// offered are the offers with which a service enlists: of its class, and then to verify, if it does that, too.
func offered(ctx context.Context, s *service) ([]market.Offer, error) {
	switch s.unoffered = s.pause.Paused(); {
	case s.Pool != "": // the pool offers for it
		return []market.Offer{{Role: s.Class}}, nil
	case s.unoffered: // it offers when it is resumed
		return asked(s).Offers(ctx, 0)
	}
	return asked(s).Offers(ctx, 1)
}

// asked are the prices of a service.
func asked(s *service) coins.Several {
	all := coins.Several{{Market: s.chain.Market, Class: s.Class, Price: s.Price, Prices: s.Prices}}
	if s.Verifies {
		all = append(all, coins.Asked{Market: s.chain.Market, Class: crew.Verifier, Price: cmp.Or(s.Checks, s.Price),
			Prices: s.Prices})
	}
	return all
}
