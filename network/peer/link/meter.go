package link

import "time"

// meter measures the rate of the bytes that come in while a caller waits for them.
type meter struct {
	rate    float64 // bytes a second: a moving average
	waiting int
	since   time.Time     // that a caller has been waiting
	waited  time.Duration // before that, since the last measurement
	bytes   uint64        // since the last measurement
}

// meterWindow is the time of waiting that makes a measurement, and meterWeight its weight among the earlier ones.
const (
	meterWindow = 200 * time.Millisecond
	meterWeight = 0.3
)

// begin and end enclose the time in which a caller waits.
func (m *meter) begin(now time.Time) {
	if m.waiting++; m.waiting == 1 {
		m.since = now
	}
}

func (m *meter) end(now time.Time) {
	if m.waiting--; m.waiting == 0 {
		m.waited += now.Sub(m.since)
		m.measure(now)
	}
}

// add counts bytes that came in.
func (m *meter) add(n int, now time.Time) {
	m.bytes += uint64(n)
	m.measure(now)
}

func (m *meter) measure(now time.Time) {
	waited := m.waited
	if m.waiting > 0 {
		waited += now.Sub(m.since)
	}
	if waited < meterWindow && (m.rate > 0 || m.waiting > 0) || waited == 0 {
		return
	}
	measured := float64(m.bytes) / waited.Seconds()
	if m.rate == 0 {
		m.rate = measured
	}
	m.rate += meterWeight * (measured - m.rate)
	m.bytes, m.waited, m.since = 0, 0, now
}
