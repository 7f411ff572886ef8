// Package marketpb holds the messages, queries and events of the market, generated from chain/proto, and their
// conversion to and from the types of protocol/market. It decides nothing.
package marketpb

import (
	"math"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
)

// Rule returns the conditions in the type of the rules.
func (c Conditions) Rule() market.Conditions {
	r := market.Conditions{
		Upload: c.Upload, Regions: c.Regions, NotRegions: c.NotRegions, Jurisdictions: c.Jurisdictions,
		NotJurisdictions: c.NotJurisdictions, Attested: c.Attested, Tier: c.Tier.Rule(), Domains: c.Domains, Hourly: c.Hourly,
		Disk: c.Disk, Passed: c.Passed,
	}
	for _, m := range c.Machines {
		r.Machines = append(r.Machines, market.Machine{Memory: m.Memory, Cores: m.Cores, Devices: m.Devices, Model: m.Model})
	}
	for _, class := range c.Classes {
		r.Classes = append(r.Classes, class.Rule())
	}
	return r
}

// FromConditions is the inverse of Conditions.Rule.
func FromConditions(r market.Conditions) Conditions {
	c := Conditions{
		Upload: r.Upload, Regions: r.Regions, NotRegions: r.NotRegions, Jurisdictions: r.Jurisdictions,
		NotJurisdictions: r.NotJurisdictions, Attested: r.Attested, Tier: registrypb.Tier(r.Tier), Domains: r.Domains,
		Hourly: r.Hourly,
		Disk:   r.Disk, Passed: r.Passed,
	}
	for _, m := range r.Machines {
		c.Machines = append(c.Machines, Machine{Memory: m.Memory, Cores: m.Cores, Devices: m.Devices, Model: m.Model})
	}
	for _, class := range r.Classes {
		c.Classes = append(c.Classes, registrypb.MachineClass(class))
	}
	return c
}

// Rule returns the choice in the type of the rules.
func (e OnExceed) Rule() market.Exceed {
	if e < 0 || e > math.MaxUint8 {
		return math.MaxUint8 // which the rules refuse
	}
	return market.Exceed(e)
}

// FromOffer is the message that makes an offer of an account. Its prices are for operations.
func FromOffer(sender string, o market.Offer) *MsgOffer {
	m := &MsgOffer{Sender: sender, Role: registrypb.Role(o.Role), Price: o.Price, Slots: o.Slots, Pool: o.Pool,
		Foreign: o.Foreign}
	for _, a := range o.Asks {
		m.Asks = append(m.Asks, Ask{Denom: a.Denom, Price: a.Price})
	}
	return m
}

// Rule returns the coin in the type of the rules.
func (m *MsgRegisterCoin) Rule() coin.Registered {
	return coin.Registered{Coin: coin.Coin{Denom: m.Denom, Symbol: m.Symbol, Exponent: m.Decimals}, Waiting: m.Waiting,
		Closed: m.Closed}
}

// Rule returns the parameters in the type of the rules.
func (p Params) Rule() market.Params {
	return market.Params{FeePPM: p.FeePpm, PauseBlocks: p.PauseBlocks, GasPrice: p.GasPrice, Numerics: p.Numerics,
		NextNumerics: p.NextNumerics, NumericsHeight: p.NumericsHeight}
}

// FromParams is the inverse of Params.Rule.
func FromParams(r market.Params) Params {
	return Params{FeePpm: r.FeePPM, PauseBlocks: r.PauseBlocks, GasPrice: r.GasPrice, Numerics: r.Numerics,
		NextNumerics: r.NextNumerics, NumericsHeight: r.NumericsHeight}
}
