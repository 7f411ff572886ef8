package market

import (
	"math"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Conditions are the requirements of an order. Place and attestation are asked of all; the rest not of verifiers, and
// class, machine, upload and tier of workers that learn alone.
type Conditions struct {
	Classes          []registry.Class `cbor:"1,keyasint,omitempty"` // none: any, also machines that were never measured
	Machines         []Machine        `cbor:"2,keyasint,omitempty"` // one of these is enough; none: any
	Upload           uint64           `cbor:"3,keyasint"`           // kbit/s, at least
	Regions          []string         `cbor:"4,keyasint,omitempty"` // none: anywhere
	NotRegions       []string         `cbor:"5,keyasint,omitempty"`
	Jurisdictions    []string         `cbor:"6,keyasint,omitempty"` // none: any
	NotJurisdictions []string         `cbor:"7,keyasint,omitempty"`
	Attested         bool             `cbor:"8,keyasint"`
	Tier             registry.Tier    `cbor:"9,keyasint"`  // at least
	Domains          uint32           `cbor:"10,keyasint"` // different failure domains of the workers of a lease, at least
	// uzen that an hour of the machine costs at its measured rate, at most; 0: any
	Hourly uint64 `cbor:"11,keyasint"`
	Disk   uint64 `cbor:"12,keyasint"` // MiB, at least
	Passed uint32 `cbor:"13,keyasint"` // audits passed since the last failure, at least
}

// Machine is the least hardware of a worker.
type Machine struct {
	Memory  uint64 `cbor:"1,keyasint"` // MiB
	Cores   uint32 `cbor:"2,keyasint"`
	Devices uint32 `cbor:"3,keyasint"`           // accelerators
	Model   string `cbor:"4,keyasint,omitempty"` // of them; none: any
}

// machine checks whether a profile is one of the machines that will do.
func (c *Conditions) machine(p *Profile) Mismatch {
	why := Fits
	for _, m := range c.Machines {
		switch {
		case p.Cores < m.Cores || p.Devices < m.Devices || m.Model != "" && m.Model != p.Model:
			if why == Fits {
				why = OtherMachine
			}
		case p.Memory < m.Memory:
			why = MemoryTooSmall
		default:
			return Fits
		}
	}
	return why
}

// MaxPlaces is the most entries of one list of conditions.
const MaxPlaces = 64

// Profile is the registry's data about the account of an offer.
type Profile struct {
	Class        registry.Class
	Tier         registry.Tier
	Memory       uint64 // MiB
	Upload       uint64 // kbit/s promised
	Disk         uint64 // MiB
	Cores        uint32
	Devices      uint32 // accelerators
	Model        string // of them
	Passed       uint32 // audits since the last failure
	Region       string
	Jurisdiction string
	Domain       string
	Attested     bool         // its machine is, by a quote that holds
	Measurement  canon.Digest `cbor:"Measurement,omitzero"` // of its software
	Rate         uint64       // operations a second; 0: not measured
	Latency      uint32       // milliseconds; 0: not measured
	Stake        uint64       // that stays, uzen
	Backing      uint64       `cbor:"Backing,omitempty"` // delegated stake that counts as well in draws of seats, uzen
	Owner        string       // account that it works for: its pool's, or its own
	Cover        uint64       // price of the work that its stake may still stand behind, in the coin of the listing
	Earning      bool         // it has no stake, and earns it
}

// ProfileOf reads a profile from the registry. owner is the account that the participant works for, leased the price of
// the work that it is leased for already.
func ProfileOf(p registry.Participant, params registry.Params, owner string, leased uint64) Profile {
	h := p.Hardware
	return Profile{
		Class: p.Class(params), Tier: p.Tier, Memory: h.Memory, Upload: h.Upload, Disk: h.Disk, Cores: h.Cores,
		Devices: h.Devices, Model: h.Model, Passed: p.Passed, Region: h.Region, Jurisdiction: h.Jurisdiction,
		Domain: h.Domain, Attested: p.Attested(), Measurement: p.Quote.Measurement, Rate: p.Rate,
		Latency: p.Latency, Stake: p.Firm(), Owner: owner, Cover: p.Collateral(params, leased), Earning: p.Earning,
	}
}

// Listing is an offer that may be matched, in one coin, with the profile of its account. Slots are those that are left,
// for the listings of the offer in all coins together; with none it is not matched.
type Listing struct {
	Offer
	Profile
	Denom string `cbor:"Denom,omitempty"` // of the coin of Price and Cover; none: the network's own
}

// In is the listing of an offer in another coin that it takes. cover is the value of the work that the
// stake in this coin still covers.
func (l Listing) In(a Ask, cover uint64) Listing {
	l.Denom, l.Price, l.Cover = a.Denom, a.Price, cover
	return l
}

// Mismatch is why an offer does not fit an order.
type Mismatch string

// The mismatches, in the order in which they are checked.
const (
	Fits              Mismatch = ""
	NoSlot            Mismatch = "no_slot"            // it works in as many runs as it offers
	WrongClass        Mismatch = "wrong_class"        // of machine, or it was never measured
	MemoryTooSmall    Mismatch = "memory_too_small"   //
	OtherMachine      Mismatch = "other_machine"      // too few cores, or none of the accelerators
	DiskTooSmall      Mismatch = "disk_too_small"     //
	TooLittleHistory  Mismatch = "too_little_history" // of audits that it has passed
	UploadTooSlow     Mismatch = "upload_too_slow"    //
	WrongRegion       Mismatch = "wrong_region"       //
	WrongJurisdiction Mismatch = "wrong_jurisdiction" //
	NotAttested       Mismatch = "not_attested"       // or runs another thing than the job lists
	TierTooLow        Mismatch = "tier_too_low"       //
	StakeTooSmall     Mismatch = "stake_too_small"    // for the work that it would be leased
	HourTooDear       Mismatch = "hour_above_cap"     // or its rate was never measured
	TooDear           Mismatch = "price_above_cap"    // of the order
	NoVerifierWanted  Mismatch = "no_verifier_wanted" // by the order
	OtherCoin         Mismatch = "other_coin"         // the offer does not take the coin of the order
	EarnsStake        Mismatch = "earns_stake"        // and the run has no place for another such worker
	// by the order: no units draw answers for those that learn, or all seats are for workers that may learn
	NoGeneratorWanted Mismatch = "no_generator_wanted"
)

var misfits = map[Mismatch]string{
	NoSlot: "it is busy: all its slots are in use", WrongClass: "its machine is of another class, or was never measured",
	MemoryTooSmall: "its memory is too small", OtherMachine: "its cores or its accelerators are not what is asked for",
	DiskTooSmall: "its disk is too small", TooLittleHistory: "it has passed too few audits since its last failure",
	UploadTooSlow: "its upload is too slow", WrongRegion: "it is in another region",
	WrongJurisdiction: "it is under another jurisdiction",
	NotAttested:       "no attestation says that its machine runs what the job lists",
	TierTooLow:        "it commits to less uptime",
	StakeTooSmall:     "its stake is too small to deter a lie in the work it would be leased",
	HourTooDear:       "an hour of it costs more than the cap, or its rate was never measured",
	TooDear:           "it asks more than the cap",
	OtherCoin:         "it does not take the coin of the order",
	NoVerifierWanted:  "the order wants no verifier", NoGeneratorWanted: "the order wants no generator",
	EarnsStake: "it earns its stake: it joins runs in progress, in addition to the staked workers",
}

// Text says a misfit in words, after "because".
func (m Mismatch) Text() string { return misfits[m] }

// misfit checks one lot, but for its price. The cheap checks that often fail come first: most lots are checked against
// orders that they do not fit.
func (w *wish) misfit(l *lot) Mismatch {
	c := &w.order.Conditions
	worker := l.Role == crew.Worker
	switch {
	case l.Role == crew.Verifier && w.order.Verifiers == 0:
		return NoVerifierWanted
	case l.Role == crew.Generator && w.order.Generators == 0:
		return NoGeneratorWanted
	case *l.left == 0:
		return NoSlot
	case l.Earning && !w.earning:
		return EarnsStake
	case worker && w.classes>>l.Class&1 == 0:
		return WrongClass
	case worker && len(c.Machines) > 0 && c.machine(&l.Profile) != Fits:
		return c.machine(&l.Profile)
	case l.Role != crew.Verifier && l.Disk < c.Disk:
		return DiskTooSmall
	case l.Role != crew.Verifier && l.Passed < c.Passed:
		return TooLittleHistory
	case worker && l.Upload < c.Upload:
		return UploadTooSlow
	case w.regions && (len(c.Regions) > 0 && !slices.Contains(c.Regions, l.Region) ||
		slices.Contains(c.NotRegions, l.Region)):
		return WrongRegion
	case w.barred != nil && w.barred[l.under]:
		return WrongJurisdiction
	case c.Attested && !w.order.Terms.Attested.Lists(l.Measurement):
		return NotAttested
	case worker && l.Tier < c.Tier:
		return TierTooLow
	case l.Role != crew.Verifier && c.Hourly > 0 && (l.Rate == 0 || cost.Hourly(l.Price, l.Rate) > c.Hourly):
		return HourTooDear
	case !l.Earning && l.Cover < math.MaxUint64 && w.order.Value(l.Role, l.Price) > l.Cover:
		return StakeTooSmall
	}
	return Fits
}

// wish is an order, prepared for checks against many lots.
type wish struct {
	order   *Order
	classes uint8  // bit c: class c will do
	regions bool   // some will not do
	earning bool   // workers that earn their stake will do, and no others
	barred  []bool // jurisdictions of the book that will not do; nil: none
}

func (b *OrderBook) wish(o *Order) *wish {
	w := &wish{order: o, classes: math.MaxUint8, regions: len(o.Conditions.Regions)+len(o.Conditions.NotRegions) > 0}
	if c := o.Conditions; len(c.Classes) > 0 {
		w.classes = 0
		for _, class := range c.Classes {
			w.classes |= 1 << class
		}
	}
	if c := o.Conditions; len(c.Jurisdictions)+len(c.NotJurisdictions) > 0 {
		w.barred = make([]bool, len(b.jurisdictions))
		for i, j := range b.jurisdictions {
			w.barred[i] = len(c.Jurisdictions) > 0 && !slices.Contains(c.Jurisdictions, j) ||
				slices.Contains(c.NotJurisdictions, j)
		}
	}
	return w
}

// Value is the amount that a conviction must take from a member in a role at a price, in grains of the coin of the
// order, so that no lie gains:
// audit.Bond of the largest unit (of tolerant work audit.Deposit, which backs the units of its worker), at the least
// audit rate of any worker of the job for a worker, and at the rate of planted faults for a verifier, which is paid for
// a whole unit. History does not lower it, as the rate never falls below the floor.
func (o *Order) Value(role crew.Role, price uint64) uint64 {
	flops := o.Terms.UnitFlops
	if role == crew.Generator {
		flops = o.Terms.Rollout.Flops
	}
	unit, _ := cost.Of(flops, price)
	if role == crew.Verifier {
		return audit.Bond(unit, audit.PlantPPM)
	}
	if o.Terms.Tolerance.DistancePPM > 0 {
		return audit.Deposit(unit, o.Terms.Floor())
	}
	return audit.Bond(unit, o.Terms.Least())
}

// Stake is the least stake behind the work that one member is leased in a role, in the coin of the order
// (registry.Participant.Collateral). A member of an order in another coin also has the stake of its role, in uzen.
func (o *Order) Stake(role crew.Role, price uint64, params registry.Params) uint64 {
	const million = 1_000_000
	stake := audit.Ratio(o.Value(role, price), uint64(params.CoverPPM), million)
	if !o.Coin.Own() {
		return stake
	}
	return max(stake, params.MinStake(role))
}

// Checks reports whether a participant may audit work of an order by its conditions. Of verifiers only the place and
// the attestation are asked.
func (o *Order) Checks(p registry.Participant) bool {
	c, h := &o.Conditions, p.Hardware
	within := func(place string, in, out []string) bool {
		return (len(in) == 0 || slices.Contains(in, place)) && !slices.Contains(out, place)
	}
	return within(h.Region, c.Regions, c.NotRegions) && within(h.Jurisdiction, c.Jurisdictions, c.NotJurisdictions) &&
		(!c.Attested || o.Terms.Attested.Lists(p.Quote.Measurement))
}
