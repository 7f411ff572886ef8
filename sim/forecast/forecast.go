package forecast

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/sim/link"
)

// RunModel is what a run consists of whose rounds are all alike, but for the audits.
type RunModel struct {
	Round     Round           // without Inner
	Units     []time.Duration // that a whole unit takes each worker; there are as many units
	Sizes     []uint32        // of the units, where they differ, in parts of the largest; nil: all are whole
	Check     time.Duration   // that a unit takes a verifier
	Rounds    int
	Job       int64   // bytes that every member gets from the consumer first
	AuditPPM  uint32  // floor of the audit rate
	Audited   float64 // part of a unit that an audit executes, on average
	Window    int     // rounds that may be open
	Challenge int     // blocks from the last audit of a round until it is final
	Carry     int     // rounds that become final together; 0: each by itself
	Overlap   bool    // updates of these rounds but the last travel while the next one is trained
	Updates   []int64 // bytes of the update of a unit in each of these rounds; nil: as in the others
	Handed    int64   // bytes of the state that a unit leaves for the next of these rounds
}

// Durations are how long the parts of a run take. Total is from the match to the last attestation.
type Durations struct {
	Start                  time.Duration // until all members have the job
	Inner, Exchange, Chain time.Duration // of a round
	Audits                 time.Duration // that training waits for audits, in all
	Total                  time.Duration
	Utilisation            float64 // share of the time of all workers that goes into their units
	Fetched                int64   // bytes of states left for units that auditors fetch, in all
}

// Blocks that an audit takes in addition to executing the unit: until it is drawn, and until its seal is opened.
const (
	drawBlocks = 1
	sealBlocks = 3
)

// forecastRounds is how many rounds of a long run are followed; the others are taken to be as the last half of these.
const forecastRounds = 1000

// Forecast says how a course will go, without playing it: rounds take what Round says, the longest share of the units
// of one worker is waited for, and audits go to the verifiers one after the other.
func (c RunModel) Forecast() Durations {
	dealt := c.dealt()
	r := c.Round
	f := Durations{Exchange: r.Exchange(), Chain: r.Chain()}
	var together time.Duration // of all workers, in a round
	for _, d := range dealt {
		f.Inner += d.span / time.Duration(len(dealt))
		together += d.together / time.Duration(len(dealt))
	}
	members := int64(r.Workers + r.Verifiers)
	f.Start = link.Over(int(c.Job*members), r.Link.Up) + r.Block + 2*r.Link.Slowest(r.Workers)
	plain := f.Start + time.Duration(c.Rounds)*(f.Inner+r.Overhead())
	if c.Overlap {
		unaudited := c
		unaudited.AuditPPM = 0
		plain, _ = unaudited.follow(f, dealt, nil)
	}
	f.Total = plain
	if c.AuditPPM > 0 {
		const draws = 4 // of which the mean counts
		f.Total = 0
		for seed := range uint64(draws) {
			took, fetches := c.follow(f, dealt, rand.New(rand.NewPCG(seed, 0)))
			f.Total += took / draws
			f.Fetched += int64(fetches) * c.Handed / draws
		}
	}
	f.Audits = max(0, f.Total-plain)
	f.Utilisation = (time.Duration(c.Rounds) * together).Seconds() / (float64(r.Workers) * f.Total.Seconds())
	return f
}

// dealing is what the workers get in a round.
type dealing struct {
	units          [][]float64   // of each worker: the part of a whole one that each of its units is
	span, together time.Duration // that the slowest worker takes for its units, and all workers in sum
}

// dealtRounds is how many rounds are dealt; later ones are taken to repeat them.
const dealtRounds = 64

// dealt are the first rounds, once the speed of each worker is known, in whole blocks.
func (c RunModel) dealt() (rounds []dealing) {
	blocks := make([]uint32, len(c.Units))
	for i, d := range c.Units {
		blocks[i] = uint32(max(1, min(int64(d/c.Round.Block), 1<<30)))
	}
	if c.Sizes != nil {
		units := make([][]float64, len(c.Units))
		for unit, w := range schedule.AssignBySpeed(c.Sizes, blocks, slices.Repeat([]int{-1}, len(c.Sizes))) {
			units[w] = append(units[w], float64(c.Sizes[unit])/float64(slices.Max(c.Sizes)))
		}
		return []dealing{c.dealing(units)}
	}
	owed := make([]int32, len(c.Units))
	for range max(1, min(c.Rounds, dealtRounds)) {
		due := schedule.ShareBySpeed(uint32(len(c.Units)), blocks, owed)
		units := make([][]float64, len(c.Units))
		for i, n := range due.Shares {
			units[i] = slices.Repeat([]float64{1}, int(n))
		}
		owed, rounds = due.Owed, append(rounds, c.dealing(units))
	}
	return rounds
}

// dealing is the time that units take.
func (c RunModel) dealing(units [][]float64) dealing {
	d := dealing{units: units}
	for i, mine := range units {
		var all float64
		for _, size := range mine {
			all += size
		}
		took := time.Duration(all * float64(c.Units[i]))
		d.span = max(d.span, took)
		d.together += took
	}
	return d
}

// follow lets the rounds pass, and returns when the last is attested, and how many auditors fetch the state that was
// left for a unit.
func (c RunModel) follow(f Durations, dealt []dealing, random *rand.Rand) (now time.Duration, fetches int) {
	type verdict struct {
		at     time.Duration
		worker int
	}
	type unit struct{ worker, index int }
	type holder struct{ round, verifier int }
	var (
		rounds = min(c.Rounds, forecastRounds)
		passed = make([]uint32, len(c.Units))
		free   = make([]time.Duration, max(1, c.Round.Verifiers)) // of verifiers
		due    []verdict                                          // audits that are not over, by time
		// the verifier that has the state left for a unit, of which round, from an audit
		holds = map[unit]holder{}
		final = make([]time.Duration, rounds)
		ends  = make([]time.Duration, rounds)
	)
	now = f.Start
	for r := range rounds {
		now = max(now, c.room(r, final))
		begun := now
		now += dealt[r%len(dealt)].span + c.Round.Finish
		drawn := now + drawBlocks*c.Round.Block
		for len(due) > 0 && due[0].at <= drawn {
			passed[due[0].worker]++
			due = due[1:]
		}
		last := drawn
		for w, units := range dealt[r%len(dealt)].units {
			for i, size := range units {
				if c.AuditPPM == 0 || random.Float64()*audit.Certain >= float64(audit.Rate(c.AuditPPM, passed[w])) {
					continue
				}
				v := random.IntN(len(free))
				if c.Carry > 0 {
					u := unit{w, i}
					if r%c.Carry > 0 && holds[u] != (holder{r, v}) {
						fetches++
					}
					holds[u] = holder{r + 1, v}
				}
				free[v] = max(free[v], drawn) + time.Duration(size*c.Audited*float64(c.Check))
				at := free[v] + sealBlocks*c.Round.Block
				due = append(due, verdict{at, w})
				last = max(last, at)
			}
		}
		slices.SortStableFunc(due, func(a, b verdict) int { return int(a.at - b.at) })
		now = c.attested(r, begun, now, f)
		ends[r] = now
		final[r] = max(last, now) + time.Duration(c.Challenge)*c.Round.Block
		if r > 0 {
			final[r] = max(final[r], final[r-1])
		}
	}
	if rest := c.Rounds - rounds; rest > 0 {
		half := rounds / 2
		now += time.Duration(rest) * (ends[rounds-1] - ends[half-1]) / time.Duration(rounds-half)
		fetches = fetches * c.Rounds / rounds
	}
	return now, fetches
}

// attested is when a round ends that begins at a time and whose units are committed at another.
func (c RunModel) attested(r int, begun, committed time.Duration, f Durations) time.Duration {
	if !c.Overlap {
		return committed + f.Exchange + f.Chain + c.Round.Combine
	}
	exchange := func(turn int) time.Duration {
		round := c.Round
		if len(c.Updates) > 0 {
			round.Update = c.Updates[turn]
		}
		return round.Exchange() + f.Chain + round.Combine
	}
	turn, last := r%c.Carry, (r+1)%c.Carry == 0 || r+1 == c.Rounds
	before := begun // when the updates of the round before have been combined
	if turn > 0 {
		before += exchange(turn - 1)
	}
	if last {
		return max(committed, before) + exchange(c.Carry-1)
	}
	return max(committed+f.Chain/2, before) // of two decisions on the chain it waits for one
}

// room is when a round may begin: when fewer than Window are open.
func (c RunModel) room(r int, final []time.Duration) time.Duration {
	before := r - c.Window
	if before < 0 {
		return 0
	}
	if c.Carry > 0 {
		before = before/c.Carry*c.Carry + c.Carry - 1
	}
	return final[min(before, r-1)]
}
