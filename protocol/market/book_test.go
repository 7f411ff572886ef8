package market

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// A lot that fits every order, which tests spoil.
func good(id string, role crew.Role, price uint64) Listing {
	return Listing{Offer: Offer{ID: id, Role: role, Price: price, Slots: 1, At: 1}, Profile: Profile{
		Class: registry.Professional, Tier: registry.Silver, Memory: 16, Cores: 4, Disk: 30, Passed: 4, Upload: 100,
		Region: "eu", Jurisdiction: "DE", Domain: id,
		Attested: true, Measurement: canon.Sum("image"), Rate: 1e12, Latency: 10, Cover: math.MaxUint64,
	}}
}

func picky() Order {
	o := order()
	o.Workers, o.Verifiers = Workers{Min: 1, Target: 1, Max: 1}, 1
	o.Conditions = Conditions{
		Classes:  []registry.Class{registry.Professional, registry.Datacentre},
		Machines: []Machine{{Memory: 16, Cores: 4}, {Memory: 8, Devices: 1, Model: "h100"}}, Disk: 30, Passed: 4,
		Upload: 100, Regions: []string{"eu", "us"}, NotRegions: []string{"us"},
		Jurisdictions: []string{"DE", "FR"}, NotJurisdictions: []string{"FR"}, Attested: true, Tier: registry.Silver,
		Hourly: cost.Hourly(101, 1e12),
	}
	o.Terms.Attested = terms.Attested{Measurements: []canon.Digest{canon.Sum("image")}, FactorPPM: audit.Certain}
	return o
}

// Every condition is held by itself, and the estimate says which one is not.
func TestConditions(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Listing)
		want  Mismatch
	}{
		"busy":         {func(l *Listing) { l.Slots = 0 }, NoSlot},
		"class":        {func(l *Listing) { l.Class = registry.Consumer }, WrongClass},
		"not measured": {func(l *Listing) { l.Class = registry.Unrated }, WrongClass},
		"memory":       {func(l *Listing) { l.Memory = 15 }, MemoryTooSmall},
		"cores":        {func(l *Listing) { l.Cores = 3 }, OtherMachine},
		"accelerators": {func(l *Listing) { l.Cores, l.Devices, l.Model = 3, 8, "a100" }, OtherMachine},
		"accelerators, memory": {func(l *Listing) { l.Cores, l.Memory, l.Devices, l.Model = 3, 7, 1, "h100" },
			MemoryTooSmall},
		"disk":                {func(l *Listing) { l.Disk = 29 }, DiskTooSmall},
		"history":             {func(l *Listing) { l.Passed = 3 }, TooLittleHistory},
		"upload":              {func(l *Listing) { l.Upload = 99 }, UploadTooSlow},
		"region":              {func(l *Listing) { l.Region = "asia" }, WrongRegion},
		"region denied":       {func(l *Listing) { l.Region = "us" }, WrongRegion},
		"jurisdiction":        {func(l *Listing) { l.Jurisdiction = "" }, WrongJurisdiction},
		"jurisdiction denied": {func(l *Listing) { l.Jurisdiction = "FR" }, WrongJurisdiction},
		"attested":            {func(l *Listing) { l.Attested, l.Measurement = false, canon.Digest{} }, NotAttested},
		"another image":       {func(l *Listing) { l.Measurement = canon.Sum("another") }, NotAttested},
		"tier":                {func(l *Listing) { l.Tier = registry.Bronze }, TierTooLow},
		"stake":               {func(l *Listing) { l.Cover = 3*4*100 - 1 }, StakeTooSmall},
		"hour":                {func(l *Listing) { l.Rate = 2e12 }, HourTooDear},
		"price":               {func(l *Listing) { l.Price, l.Rate = 1001, 1e11 }, TooDear},
	} {
		lots := []Listing{good("w0", crew.Worker, 100), good("w1", crew.Worker, 100), good("v0", crew.Verifier, 100)}
		c.spoil(&lots[0])
		e := NewBook(lots, canon.Sum("beacon")).Estimate(picky())
		if e.Why != Matched || len(e.Passed) != 1 || e.Passed[0].ID != "w0" || e.Passed[0].Why != c.want ||
			e.Passed[0].Why.Text() == "" {
			t.Errorf("%s: %q, %+v, want %q", name, e.Why, e.Passed, c.want)
		}
		alone := NewBook([]Listing{lots[0], lots[2]}, canon.Sum("beacon"))
		if _, why := alone.Match(picky()); why == Matched {
			t.Errorf("%s: alone %q", name, why)
		}
	}
}

func TestReasons(t *testing.T) {
	o := picky()
	o.Workers, o.Conditions.Domains, o.Conditions.Hourly = Workers{Min: 2, Target: 2, Max: 2}, 2, 0
	two := func(spoil func(a, b, v *Listing)) *OrderBook {
		a, b, v := good("a", crew.Worker, 100), good("b", crew.Worker, 100), good("v", crew.Verifier, 100)
		spoil(&a, &b, &v)
		return NewBook([]Listing{a, b, v}, canon.Sum("beacon"))
	}
	for name, c := range map[string]struct {
		spoil func(a, b, v *Listing)
		want  Reason
	}{
		"none":                 {func(a, b, v *Listing) {}, Matched},
		"few workers":          {func(a, b, v *Listing) { a.Slots = 0 }, TooFewWorkers},
		"few verifiers":        {func(a, b, v *Listing) { v.Slots = 0 }, TooFewVerifiers},
		"conditions":           {func(a, b, v *Listing) { a.Memory = 0 }, ConditionsUnmet},
		"conditions, verifier": {func(a, b, v *Listing) { v.Region = "" }, ConditionsUnmet},
		"domains":              {func(a, b, v *Listing) { a.Domain = "b" }, TooFewDomains},
		"price":                {func(a, b, v *Listing) { a.Price = 2000 }, PriceAboveCap},
		"price, verifier":      {func(a, b, v *Listing) { v.Price = 2000 }, PriceAboveCap},
		"one account for both": {func(a, b, v *Listing) { v.ID = "a" }, TooFewVerifiers},
	} {
		if _, why := two(c.spoil).Match(o); why != c.want {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
}

// A slot is taken once, and the stake stands behind what is leased.
func TestTake(t *testing.T) {
	o := order()
	o.Workers, o.Verifiers = Workers{1, 1, 1}, 0
	l := good("a", crew.Worker, 100)
	l.Slots, l.Cover = 9, 2*o.Value(crew.Worker, 100)+1
	b := NewBook([]Listing{l}, canon.Sum("beacon"))
	for i, want := range []Reason{Matched, Matched, ConditionsUnmet} {
		lease, why := b.Match(o)
		if why != want {
			t.Fatalf("%d: %q, want %q", i, why, want)
		}
		b.Take(o, lease.Members)
	}
}

func TestEstimate(t *testing.T) {
	o := order()
	lots := []Listing{good("a", crew.Worker, 100), good("b", crew.Worker, 300), good("v", crew.Verifier, 600)}
	e := NewBook(lots, canon.Sum("beacon")).Estimate(o)
	// 3 rounds of 4 units of 10^15 operations, at 2 x 10^12 a second; one unit in 20 is audited.
	if e.Why != Matched || e.Round != 4*900 || e.Whole != 12*900 || e.Likely != 12*300+12*600/20 || e.Seconds != 6000 {
		t.Errorf("%+v", e)
	}
	lots[0].Rate = 0
	if e := NewBook(lots, canon.Sum("beacon")).Estimate(o); e.Seconds != 0 {
		t.Errorf("%d seconds with a machine that was never measured", e.Seconds)
	}
}

func TestOrderConditionsValidate(t *testing.T) {
	for name, spoil := range map[string]func(*Order){
		"exceed": func(o *Order) { o.OnExceed = 2 }, "shares": func(o *Order) { o.SharesPPM = million + 1 },
		"class":   func(o *Order) { o.Conditions.Classes = []registry.Class{registry.Unrated} },
		"tier":    func(o *Order) { o.Conditions.Tier = 9 },
		"place":   func(o *Order) { o.Conditions.Regions = []string{""} },
		"places":  func(o *Order) { o.Conditions.NotJurisdictions = make([]string, MaxPlaces+1) },
		"domains": func(o *Order) { o.Conditions.Domains = o.Workers.Min + 1 },
	} {
		o := picky()
		if spoil(&o); o.Validate() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := picky().Validate(); err != nil {
		t.Error(err)
	}
}

// market1000 is 1,000 orders and 10,000 offers that differ in everything.
func market1000() (orders []Order, lots []Listing) {
	r := rand.New(rand.NewPCG(1, 1))
	pick := func(names ...string) string { return names[r.IntN(len(names))] }
	for i := range 10_000 {
		role := crew.Worker
		if i%5 == 0 {
			role = crew.Verifier
		}
		l := good(fmt.Sprint("starling1", i), role, 100+r.Uint64N(900))
		l.Class, l.Tier, l.Memory, l.Latency = registry.Class(r.IntN(6)), registry.Tier(r.IntN(4)), r.Uint64N(81920),
			r.Uint32N(200)
		l.Region, l.Jurisdiction, l.Attested = pick("eu", "us", "asia", "af", "sa"),
			pick("DE", "FR", "US", "JP", "BR", "ZA"), r.IntN(4) == 0
		l.Domain, l.At = fmt.Sprint(r.IntN(500)), r.Int64N(1000)
		lots = append(lots, l)
	}
	for i := range 1000 {
		o := order()
		o.ID = fmt.Sprint("job", i)
		o.Terms.Job, o.Workers, o.Verifiers = o.ID, Workers{2, 6, 8}, 1
		switch r.IntN(3) {
		case 0:
			o.Conditions = Conditions{Machines: []Machine{{Memory: 16384}},
				Classes: []registry.Class{registry.Professional, registry.Datacentre}, Domains: 2}
		case 1:
			o.Conditions = Conditions{Machines: []Machine{{Memory: 8192}}, Regions: []string{"eu", "us"},
				NotJurisdictions: []string{"FR"}, Tier: registry.Bronze}
		}
		orders = append(orders, o)
	}
	return orders, lots
}

func matchAll(orders []Order, lots []Listing) (matched int) {
	b := NewBook(lots, canon.Sum("beacon"))
	for _, o := range orders {
		if lease, why := b.Match(o); why == Matched {
			b.Take(o, lease.Members)
			matched++
		}
	}
	return matched
}

// BenchmarkMatch is 1,000 orders that meet 10,000 offers in one block; the bar is 100 ms.
func BenchmarkMatch(b *testing.B) {
	orders, lots := market1000()
	for b.Loop() {
		b.ReportMetric(float64(matchAll(orders, lots)), "matched")
	}
}
