package peer

import "time"

// How bulk is paced. Streams of one connection share its queues, so that a control message waits behind whatever bulk
// is queued on the way; what is not sent faster than the path carries it does not queue.
const (
	paceStart = 8 << 20  // bytes a second, before anything is measured
	paceLeast = 64 << 10 // bytes a second
	paceMost  = 1 << 40
	paceGrow  = 0.05 // of the rate, in a second
	paceCut   = 0.8  // of what arrives, when it queues
	paceFall  = 8    // at most this much: nothing may arrive for a moment
	// of what arrived when it queued, without a queue: then the capacity is searched again
	paceBeyond  = 2
	paceQueue   = 15 * time.Millisecond // delay of a control message that shows a queue, or
	paceShare   = 4                     // this part of the shortest round trip, if that is more
	paceSamples = 3                     // in a row that must show it: delays of a moment are not queues
	paceMemory  = 5 * time.Minute       // for which the shortest round trip counts at least
	paceWindow  = 100 * time.Millisecond
	paceDoubt   = 2                // part of the rate that is left when it is measured how late messages are without bulk
	paceTrust   = 10 * time.Second // for which that counts
)

// pace is how fast bulk is sent to one peer: additive increase and multiplicative decrease by the round trip times of
// control messages, as TCP Vegas and LEDBAT (RFC 6817) do by those of data, from a start that doubles (RFC 5681). Each
// answer to a control message also says how many bytes have arrived, so that a cut goes to what the path carries. It is
// a pure function of its samples.
type pace struct {
	rate     float64 // bytes a second
	starting bool    // doubling: no queue was seen yet
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

// pursuit is what a pace is at.
type pursuit struct {
	rate     float64
	starting bool
}

// echo is the answer to a control message.
type echo struct {
	at      time.Duration // on a clock that only goes forward
	trip    time.Duration // round trip
	sent    uint64        // bytes of bulk sent to the peer so far
	arrived uint64        // of them, as the peer says
}

func newPace() *pace {
	return &pace{rate: paceStart, starting: true, before: pursuit{paceStart, true}}
}

// base is the shortest round trip of the last minutes: that of an empty path.
func (p *pace) base() time.Duration {
	if p.shortest[1] == 0 {
		return p.shortest[0]
	}
	return min(p.shortest[0], p.shortest[1])
}

// sample takes an answer into account.
func (p *pace) sample(e echo) {
	p.remember(e)
	p.recent = append(p.recent, e.trip)
	needed := paceSamples
	if p.starting {
		needed--
	}
	p.recent = p.recent[max(0, len(p.recent)-needed):]
	elapsed := e.at - p.at
	window := paceWindow
	if p.starting {
		window = min(window, max(e.trip, time.Millisecond))
	}
	if elapsed < window {
		return
	}
	p.sending = float64(e.sent-min(p.sent, e.sent)) / elapsed.Seconds()
	p.arriving = float64(e.arrived-min(p.arrived, e.arrived)) / elapsed.Seconds()
	p.at, p.sent, p.arrived = e.at, e.sent, e.arrived
	switch busy := p.sending > p.rate/2; {
	case len(p.recent) == needed && p.queued(e.at):
		if p.sending > 0 {
			p.carried = min(p.rate, p.arriving)
			if elapsed < paceWindow { // so little time that nothing may have come
				p.carried = max(p.carried, p.rate/2)
			}
			p.rate = max(paceCut*p.carried, p.rate/paceFall, paceLeast)
			p.starting = false
		}
		p.recent = p.recent[:0]
	case !busy:
	case p.starting:
		p.rate = min(2*p.rate, paceMost)
	default:
		p.rate = min((1+paceGrow*min(elapsed.Seconds(), 1))*p.rate, paceMost)
		p.starting = p.rate > paceBeyond*p.carried
	}
	if p.rate > p.before.rate {
		p.before = pursuit{p.rate, p.starting}
	}
}

// doubts reports whether the rate was cut deeply. Either the path carries less than before, or messages are late for
// another reason than bulk, such as a processor that others use; how late they are without bulk tells.
func (p *pace) doubts() bool { return p.rate < p.before.rate/paceDoubt }

// unloaded takes the round trip of a message into account that was sent while no bulk was on the way. If it was late,
// too, the cuts were wrong.
func (p *pace) unloaded(at, trip time.Duration) {
	p.recent = p.recent[:0]
	p.late, p.lateUntil = max(0, trip-p.base()), at+paceTrust
	if p.late > p.patience()/2 {
		p.rate, p.starting = p.before.rate, p.before.starting
	}
	p.before = pursuit{p.rate, p.starting}
}

// patience is how late a message may be without a queue, on a machine that has time for it.
func (p *pace) patience() time.Duration { return max(paceQueue, p.base()/paceShare) }

// queued reports whether even the fastest of the recent messages had to wait, for longer than without bulk.
func (p *pace) queued(now time.Duration) bool {
	fastest := p.recent[0]
	for _, trip := range p.recent {
		fastest = min(fastest, trip)
	}
	limit := p.patience()
	if now < p.lateUntil {
		limit += 2 * p.late
	}
	return fastest-p.base() > limit
}

// remember keeps the shortest round trip.
func (p *pace) remember(e echo) {
	if e.at-p.period > paceMemory {
		p.shortest[1], p.shortest[0], p.period = p.shortest[0], 0, e.at
	}
	if p.shortest[0] == 0 || e.trip < p.shortest[0] {
		p.shortest[0] = e.trip
	}
}
