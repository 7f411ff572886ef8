package market

import (
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/coin"
)

// Offered is an offer as it is matched, for programs.
type Offered struct {
	ID    string `json:"id"`
	Role  string `json:"role"`
	Price uint64 `json:"price"` // grains of coin per 10^15 floating-point operations
	// of price and cover; absent: ZEN
	Coin         coin.Coin `json:"coin,omitzero"`
	Slots        uint32    `json:"slots"`
	Since        int64     `json:"since"` // height
	Class        string    `json:"class"`
	Tier         string    `json:"tier"`
	Memory       uint64    `json:"memory_mib"`
	Upload       uint64    `json:"upload_kbps"`
	Disk         uint64    `json:"disk_mib"`
	Cores        uint32    `json:"cpus"`
	Devices      uint32    `json:"accelerators"`
	Model        string    `json:"accelerator_model,omitempty"`
	Passed       uint32    `json:"audits_passed"`
	Region       string    `json:"region"`
	Jurisdiction string    `json:"jurisdiction"`
	Domain       string    `json:"domain"`
	Attested     bool      `json:"attested"`
	Rate         uint64    `json:"rate"`       // operations a second; 0: not measured
	Latency      uint32    `json:"latency_ms"` // 0: not measured
	Cover        uint64    `json:"cover_uzen"` // price of the work that its stake may still stand behind
}

func offersOf(lots []inspect.MarketOffer) []Offered {
	lines := make([]Offered, len(lots))
	for i, l := range lots {
		lines[i] = Offered{
			ID: l.ID, Role: l.Role.String(), Price: l.Price, Slots: l.Slots, Since: l.At, Class: l.Class.String(),
			Tier: l.Tier.String(), Memory: l.Memory,
			Upload: l.Upload, Disk: l.Disk, Cores: l.Cores, Devices: l.Devices, Model: l.Model, Passed: l.Passed,
			Region: l.Region, Jurisdiction: l.Jurisdiction, Domain: l.Domain, Attested: l.Attested, Rate: l.Rate,
			Latency: l.Latency, Cover: l.Cover, Coin: l.Coin,
		}
	}
	return lines
}

// Ordered is an open order, for programs.
type Ordered struct {
	Job       string `json:"job"`
	Consumer  string `json:"consumer"`
	Budget    uint64 `json:"budget_uzen"`
	PriceCap  uint64 `json:"price_cap"`
	Workers   uint32 `json:"workers"` // at least
	Most      uint32 `json:"most_workers"`
	Verifiers uint32 `json:"verifiers"`
	Since     int64  `json:"since"`   // height
	Expires   int64  `json:"expires"` // height; 0: never
	Why       string `json:"why"`
	// of budget and cap, which are in its grains; absent: ZEN
	Coin coin.Coin `json:"coin,omitzero"`
}

func ordersOf(orders []module.OrderStatus) []Ordered {
	lines := make([]Ordered, len(orders))
	for i, o := range orders {
		lines[i] = Ordered{Job: o.ID, Consumer: o.Consumer, Budget: o.Budget, PriceCap: o.PriceCap, Workers: o.Workers.Min,
			Most: o.Workers.Max, Verifiers: o.Verifiers, Since: o.At, Expires: o.Deadline, Why: o.Why,
			Coin: o.Coin}
	}
	return lines
}
