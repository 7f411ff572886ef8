package estimate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/standing"
)

// Machine is the machine whose income is estimated, as it would register and offer its work.
type Machine struct {
	Account  string // that is measured on the network; empty: none, the machine would join
	Hardware registry.Hardware
	Rate     uint64        // operations a second, as the network measured them; 0: it did not
	Measured Measured      // here, where it did not
	Tier     registry.Tier // that it would commit to
	Stake    uint64        // uzen
	Price    uint64        // uzen for 10^15 operations
}

// Report is the estimate for a machine on a network.
type Report struct {
	Height  int64   `json:"height"`
	Seconds float64 `json:"window_seconds"` // in which the pay of workers was read: a day, or since the chain began

	Class     string  `json:"class"`
	Rate      uint64  `json:"rate"`    // operations a second
	Workers   int     `json:"workers"` // that are measured, and offer work or were paid
	Paid      int     `json:"paid_workers"`
	Income    Range   `json:"day"`           // of this machine
	Places    []Place `json:"places"`        // free ones, of runs in progress whose orders take the offer
	Most      uint64  `json:"most_uzen"`     // a day, if it always trains at its price
	Price     uint64  `json:"price"`         // uzen for 10^15 operations
	Orders    []Fit   `json:"orders"`        // open orders, and those of runs in progress
	More      int     `json:"more_orders"`   // that were not read
	Raises    []Step  `json:"raises"`        // classes and tiers that weigh more
	Standby   uint64  `json:"standby_ppm"`   // of the stake of verifiers, earned in the last epoch, for a year of such
	Committed uint64  `json:"committed_ppm"` // the same of stakes with a tier
}

// Fit is whether an order takes the offer of the machine.
type Fit struct {
	Job    string          `json:"job"`
	Open   bool            `json:"open"` // false: its run is in progress, and takes workers for free places
	Why    market.Mismatch `json:"mismatch,omitempty"`
	Text   string          `json:"text,omitempty"`
	Do     string          `json:"do,omitempty"`
	Budget uint64          `json:"budget_uzen"`
	Coin   coin.Coin       `json:"coin,omitzero"` // of the budget, in its grains; absent: ZEN
}

// mostOrders is how many orders are read.
const mostOrders = 256

// candidate is the account of the machine in the books that it is put into; no account has this name.
const candidate = "candidate"

// asked is what the network says.
type asked struct {
	height int64
	pace   time.Duration // of a block
	stakes registry.Params
	all    []registry.Participant
	offers []market.Offer
	joins  bool // the machine is none of the workers of the network
}

// Ask estimates the income of a machine on a network.
func Ask(ctx context.Context, network string, m Machine) (*Report, error) {
	c, head, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	pace := session.BlockTime(ctx, c, head)
	if pace <= 0 {
		return nil, fmt.Errorf("%w: the chain has %d blocks", ErrTooYoung, head.Height)
	}
	return Of(ctx, c.At(head.Height), head.Height, pace, m)
}

// Of estimates the income of a machine from the state of a network at a height, whose blocks take pace in the mean.
func Of(ctx context.Context, c *client.Client, height int64, pace time.Duration, m Machine) (r *Report, err error) {
	a := &asked{height: height, pace: pace}
	if m.Rate == 0 {
		m.Rate = m.Measured.Found(a.pace)
	}
	if a.stakes, err = c.Registry.Params(ctx); err != nil {
		return nil, err
	}
	if a.all, err = c.Registry.Participants(ctx); err != nil {
		return nil, err
	}
	if a.offers, err = c.Market.Offers(ctx); err != nil {
		return nil, err
	}
	p := m.participant()
	r = &Report{Height: height, Class: p.Class(a.stakes).String(), Rate: m.Rate, Price: m.Price,
		Raises: Raises(p, a.stakes)}
	steps := []func(context.Context, *client.Client, Machine, *Report) error{a.income, a.orders, a.yields}
	for _, step := range steps {
		if err := step(ctx, c, m, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Registered is the machine of an account, as it is registered and offered; nil: it is not, or was not measured.
func Registered(ctx context.Context, network, account string) (*Machine, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	p, err := c.Registry.Participant(ctx, account)
	if errors.Is(err, client.ErrNotFound) || err == nil && p.Rate == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Machine{Account: account, Hardware: p.Hardware, Rate: p.Rate, Tier: p.Tier, Stake: p.Stake,
		Price: market.DefaultPrice}
	offers, err := c.Market.Offers(ctx)
	for _, o := range offers {
		if o.ID == account && o.Role == crew.Worker {
			m.Price = o.Price
		}
	}
	return m, err
}

// ErrTooYoung means that a chain has too few blocks to tell how long one takes.
var ErrTooYoung = errors.New("estimate: the network has only begun")

func (m Machine) participant() registry.Participant {
	return registry.Participant{ID: candidate, Roles: []crew.Role{crew.Worker}, Hardware: m.Hardware, Rate: m.Rate,
		Tier: m.Tier, Stake: m.Stake}
}

// day is the number of blocks in a day.
func (a *asked) day() float64 { return (24 * time.Hour).Seconds() / a.pace.Seconds() }

// income reads the pay of the workers in the last day.
func (a *asked) income(ctx context.Context, c *client.Client, m Machine, r *Report) error {
	day := a.day()
	from := a.height - min(a.height, int64(math.Ceil(day)))
	r.Seconds = float64(a.height-from) * a.pace.Seconds()
	receipts, err := a.receipts(ctx, c, from)
	if err != nil {
		return err
	}
	offers := map[string]bool{}
	for _, o := range a.offers {
		if o.Role == crew.Worker {
			offers[o.ID] = true
		}
	}
	workers := Earners(a.all, offers, receipts, from, a.height)
	a.joins = !slices.ContainsFunc(workers, func(w Earner) bool { return w.ID == m.Account })
	r.Workers, r.Paid, r.Income = len(workers), Paid(workers), Spread(workers, m.Rate, a.joins, day)
	params, err := c.Market.Params(ctx)
	if err != nil {
		return err
	}
	gross := cost.Hourly(m.Price, m.Rate) * 24
	r.Most = gross - market.Share(gross, params.FeePPM)
	return nil
}

// receipts are those of runs and of settled epochs, of heights after from and of some before.
func (a *asked) receipts(ctx context.Context, c *client.Client, from int64) (all []reward.Receipt, err error) {
	jobs, err := c.Training.Runs(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		list, err := c.Training.Receipts(ctx, job)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	first, _ := a.stakes.Epoch(from)
	last, _ := a.stakes.Epoch(a.height)
	for n := first; n < last; n++ {
		list, err := a.epoch(ctx, c, n)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func (a *asked) epoch(ctx context.Context, c *client.Client, number int64) ([]reward.Receipt, error) {
	return c.Reward.Book(ctx, reward.Epoch{Number: number}.Name(), 0, 0)
}

// orders reads whether the open orders, and those of runs in progress, take the offer, and the free places of these
// runs, which change the income of a machine that joins.
func (a *asked) orders(ctx context.Context, c *client.Client, m Machine, r *Report) error {
	lots, err := c.Market.Lots(ctx)
	if err != nil {
		return err
	}
	mine := market.Listing{
		Offer:   market.Offer{ID: candidate, Role: crew.Worker, Price: m.Price, Slots: 1},
		Profile: market.ProfileOf(m.participant(), a.stakes, candidate, 0),
	}
	book := market.NewBook(append(lots, mine), canon.Digest{})
	r.Orders = []Fit{}
	add := func(o market.Order, open bool) {
		why := book.Unfit(o, crew.Worker, candidate)
		r.Orders = append(r.Orders, Fit{o.ID, open, why, why.Text(), standing.Remedy(why), o.Budget, o.Coin})
	}
	open, err := c.Market.Orders(ctx)
	if err != nil {
		return err
	}
	running, err := c.Training.Runs(ctx, true)
	if err != nil {
		return err
	}
	r.More = max(0, len(open)+len(running)-mostOrders)
	for _, o := range open[:min(len(open), mostOrders)] {
		add(o.Order, true)
	}
	var fitting []market.Order // of runs in progress
	for _, job := range running[:min(len(running), mostOrders-len(r.Orders))] {
		o, err := c.Market.PlacedOrder(ctx, job)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		add(o.Order, false)
		if last := r.Orders[len(r.Orders)-1]; last.Why == market.Fits && o.Coin.Own() {
			fitting = append(fitting, o.Order)
		}
	}
	r.Places, err = a.places(ctx, c, m, book, lots, fitting)
	if a.joins && err == nil {
		r.Income = InPlaces(r.Income, r.Places, a.day())
	}
	return err
}

// yields reads what the stakes of verifiers that stood by, and of participants with a tier, earned in the last epoch.
func (a *asked) yields(ctx context.Context, c *client.Client, _ Machine, r *Report) error {
	last, _ := a.stakes.Epoch(a.height)
	if last == 0 {
		return nil
	}
	receipts, err := a.epoch(ctx, c, last-1)
	if err != nil {
		return err
	}
	seconds := float64(a.stakes.EpochBlocks) * a.pace.Seconds()
	r.Standby = a.yield(receipts, reward.Standby, seconds)
	r.Committed = a.yield(receipts, reward.Base, seconds)
	return nil
}

const secondsOfYear = 365 * 24 * 3600

// yield is the reward of a kind for the stakes that got one in an epoch, for a year of such epochs, in ppm.
func (a *asked) yield(receipts []reward.Receipt, kind reward.Kind, seconds float64) uint64 {
	firm := map[string]uint64{}
	for _, p := range a.all {
		firm[p.ID] = p.Firm()
	}
	var amount, stake uint64
	for _, r := range receipts {
		if staked, ok := firm[r.Who]; ok && r.Kind == kind && r.Amount > 0 {
			amount, stake = amount+r.Amount, stake+staked
		}
	}
	if stake == 0 {
		return 0
	}
	return uint64(float64(amount) / float64(stake) * secondsOfYear / seconds * 1e6)
}
