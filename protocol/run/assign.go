package run

import (
	"bytes"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/schedule"
)

// deal hands out the units of the round, when there is a beacon and room in the window: to the active workers in an
// order that nobody could choose, as many as each is fast. A round that the escrow does not cover waits for what
// earlier rounds leave, and without any ends the run. So does a round that the consumer no longer wants; while it
// pauses the run, no round begins.
func (d *assignment) deal() {
	switch {
	case d.env.CancelRequested:
		if len(d.Open) == 0 {
			d.halt(WhyCancelled)
		}
		return
	case d.env.Paused || d.env.Beacon.IsZero() || len(d.Open) >= int(d.Terms.Window):
		return
	case d.env.BudgetExhausted:
		if len(d.Open) == 0 {
			d.halt(WhyBudgetExhausted)
		}
		return
	}
	workers := d.shuffled(d.Active(Worker))
	if len(workers) == 0 {
		d.halt(WhyNoWorkers)
		return
	}
	owners := d.equal
	if d.Terms.Sizes != nil {
		owners = d.fitted
	}
	for i, worker := range owners(workers) {
		u := &Unit{Index: uint32(i), Status: Assigned, Worker: worker, Attempt: d.FirstAttempt, AssignedAt: d.env.Height}
		u.Deadline = d.owed(u.Worker, u.Index, d.env.Height)
		d.Units = append(d.Units, u)
		d.emit(Event{Kind: UnitAssigned, Round: d.Round, Unit: u.Index, Who: u.Worker})
	}
	d.enter(Train)
}

// equal deals units of one size: to each worker as many as its share, first those that it did in the round before.
func (d *assignment) equal(workers []string) []string {
	shares := d.measured(workers, func(blocks []uint32) []uint32 { return schedule.SplitBySpeed(d.Terms.Units, blocks) })
	owners := make([]string, d.Terms.Units)
	for i, k := range d.had(workers) {
		if k >= 0 && shares[k] > 0 {
			shares[k]--
			owners[i] = workers[k]
		}
	}
	turn := 0
	for i := range owners {
		if owners[i] != "" {
			continue
		}
		for shares[turn] == 0 {
			turn = (turn + 1) % len(workers)
		}
		shares[turn]--
		owners[i], turn = workers[turn], (turn+1)%len(workers)
	}
	return owners
}

// shuffled orders members by a digest of the beacon.
func (d *draft) shuffled(ids []string) []string {
	key := func(id string) canon.Digest {
		return canon.Sum("starling/deal/1", d.env.Beacon[:], []byte(d.Terms.Job), []byte(id))
	}
	type card struct {
		id  string
		key canon.Digest
	}
	cards := make([]card, len(ids))
	for i, id := range ids {
		cards[i] = card{id, key(id)}
	}
	slices.SortFunc(cards, func(a, b card) int { return bytes.Compare(a.key[:], b.key[:]) })
	order := make([]string, len(ids))
	for i, c := range cards {
		order[i] = c.id
	}
	return order
}

// measured splits the units over workers by how fast they are, and returns how many each gets. Who is not yet measured
// counts as the mean of those who are, and before all others if that leaves nothing for it: its first unit measures it.
// A worker that gets nothing is held to be half as slow the next time, so that it is measured again one day.
func (d *assignment) measured(workers []string, split func(blocks []uint32) (shares []uint32)) []uint32 {
	blocks := make([]uint32, len(workers))
	usual := d.usualSpeed(workers)
	var novices []int
	for i, id := range workers {
		m, _ := d.Member(id)
		if blocks[i] = m.Speed; m.Speed == 0 {
			blocks[i], novices = usual, append(novices, i)
		}
	}
	shares := split(blocks)
	if slices.ContainsFunc(novices, func(i int) bool { return shares[i] == 0 }) {
		first := max(1, slices.Min(blocks)-1)
		for _, i := range novices {
			blocks[i] = first
		}
		shares = split(blocks)
	}
	for i, id := range workers {
		if shares[i] == 0 {
			d.change(id, func(m *Member) { m.Speed /= 2 })
		}
	}
	return shares
}

// usualSpeed is the mean of the measured speeds, or any speed if none is measured.
func (d *assignment) usualSpeed(workers []string) uint32 {
	var sum, known uint64
	for _, id := range workers {
		if m, _ := d.Member(id); m.Speed > 0 {
			sum += uint64(m.Speed)
			known++
		}
	}
	if known == 0 {
		return 1
	}
	return uint32(sum / known)
}
