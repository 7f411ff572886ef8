// Package pace decides how fast bulk is sent to one peer, by the round trip times of control messages. It sends
// nothing, and reads no clock.
package pace

import "time"

// How bulk is paced. Streams of one connection share its queues, so that a control message waits behind whatever bulk
// is queued on the way; what is not sent faster than the path carries it does not queue.
const (
	paceStart = 8 << 20  // bytes a second, before anything is measured
	paceLeast = 64 << 10 // bytes a second
	paceMost  = 1 << 40
	paceGrow  = 0.05 // of the rate, in a second
	paceCut   = 0.8  // of the rate of arrival, when messages queue
	paceFall  = 8    // at most this much: nothing may arrive for a moment
	// of the rate of arrival when messages queued last, without a queue: then the capacity is searched again
	paceBeyond  = 2
	paceQueue   = 15 * time.Millisecond // delay of a control message that shows a queue, or
	paceShare   = 4                     // this part of the shortest round trip, if that is more
	paceSamples = 3                     // in a row that must show it: delays of a moment are not queues
	paceMemory  = 5 * time.Minute       // for which the shortest round trip counts at least
	paceWindow  = 100 * time.Millisecond
	paceDoubt   = 2                // part of the rate that is left when it is measured how late messages are without bulk
	paceTrust   = 10 * time.Second // for which that counts
)

// Pace is how fast bulk is sent to one peer: additive increase and multiplicative decrease by the round trip times of
// control messages, as TCP Vegas and LEDBAT (RFC 6817) do by those of data, from a start that doubles (RFC 5681). Each
// answer to a control message also says how many bytes have arrived, so that a cut leads to the rate that the path
// carries. It is a pure function of its samples.
type Pace struct {
	Rate     float64 // bytes a second
	Starting bool    // doubling: no queue was seen yet
	recent   []time.Duration
	shortest [2]time.Duration // round trips of this and the last period of paceMemory; 0: none
	period   time.Duration    // when this one began

	before    pursuit       // the highest since it was last measured how late messages are without bulk
	late      time.Duration // beyond the shortest round trip, of messages while no bulk was on the way
	lateUntil time.Duration // for as long as it counts

	carried       float64       // bytes a second that arrived when there was a queue
	at            time.Duration // of the window in which rates are measured
	sent, arrived uint64        // before it
	sending       float64       // bytes a second sent in the last window
	arriving      float64       // and arrived
}

// pursuit is what a Pace is at.
type pursuit struct {
	rate     float64
	starting bool
}

// Echo is the answer to a control message.
type Echo struct {
	At      time.Duration // on a clock that only goes forward
	Trip    time.Duration // round trip
	Sent    uint64        // bytes of bulk sent to the peer so far
	Arrived uint64        // of them, as the peer says
}

// New returns a pace that searches the capacity of a path.
func New() *Pace {
	return &Pace{Rate: paceStart, Starting: true, before: pursuit{paceStart, true}}
}

// Base is the shortest round trip of the last minutes: that of an empty path.
func (p *Pace) Base() time.Duration {
	if p.shortest[1] == 0 {
		return p.shortest[0]
	}
	return min(p.shortest[0], p.shortest[1])
}

// Sample takes an answer into account.
func (p *Pace) Sample(e Echo) {
	p.remember(e)
	p.recent = append(p.recent, e.Trip)
	needed := paceSamples
	if p.Starting {
		needed--
	}
	p.recent = p.recent[max(0, len(p.recent)-needed):]
	elapsed := e.At - p.at
	window := paceWindow
	if p.Starting {
		window = min(window, max(e.Trip, time.Millisecond))
	}
	if elapsed < window {
		return
	}
	p.sending = float64(e.Sent-min(p.sent, e.Sent)) / elapsed.Seconds()
	p.arriving = float64(e.Arrived-min(p.arrived, e.Arrived)) / elapsed.Seconds()
	p.at, p.sent, p.arrived = e.At, e.Sent, e.Arrived
	switch busy := p.sending > p.Rate/2; {
	case len(p.recent) == needed && p.queued(e.At):
		if p.sending > 0 {
			p.carried = min(p.Rate, p.arriving)
			if elapsed < paceWindow { // so little time that nothing may have come
				p.carried = max(p.carried, p.Rate/2)
			}
			p.Rate = max(paceCut*p.carried, p.Rate/paceFall, paceLeast)
			p.Starting = false
		}
		p.recent = p.recent[:0]
	case !busy:
	case p.Starting:
		p.Rate = min(2*p.Rate, paceMost)
	default:
		p.Rate = min((1+paceGrow*min(elapsed.Seconds(), 1))*p.Rate, paceMost)
		p.Starting = p.Rate > paceBeyond*p.carried
	}
	if p.Rate > p.before.rate {
		p.before = pursuit{p.Rate, p.Starting}
	}
}

// Unsure reports whether the rate was cut deeply. Either the path carries less than before, or messages are late for
// another reason than bulk, such as a processor that others use; how late they are without bulk tells.
func (p *Pace) Unsure() bool { return p.Rate < p.before.rate/paceDoubt }

// Unloaded takes the round trip of a message into account that was sent while no bulk was on the way. If it was late,
// too, the cuts were wrong.
func (p *Pace) Unloaded(at, trip time.Duration) {
	p.recent = p.recent[:0]
	p.late, p.lateUntil = max(0, trip-p.Base()), at+paceTrust
	if p.late > p.patience()/2 {
		p.Rate, p.Starting = p.before.rate, p.before.starting
	}
	p.before = pursuit{p.Rate, p.Starting}
}

// patience is how late a message may be without a queue, on a machine that has time for it.
func (p *Pace) patience() time.Duration { return max(paceQueue, p.Base()/paceShare) }

// queued reports whether even the fastest of the recent messages had to wait, for longer than without bulk.
func (p *Pace) queued(now time.Duration) bool {
	fastest := p.recent[0]
	for _, trip := range p.recent {
		fastest = min(fastest, trip)
	}
	limit := p.patience()
	if now < p.lateUntil {
		limit += 2 * p.late
	}
	return fastest-p.Base() > limit
}

// remember keeps the shortest round trip.
func (p *Pace) remember(e Echo) {
	if e.At-p.period > paceMemory {
		p.shortest[1], p.shortest[0], p.period = p.shortest[0], 0, e.At
	}
	if p.shortest[0] == 0 || e.Trip < p.shortest[0] {
		p.shortest[0] = e.Trip
	}
}
