package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-network/starling/network/peer/link"
)

// peers is a collector of the known properties of each peer.
type peers struct {
	read                                                 func() []link.State
	connected, roundTrip, pace, download, sent, received *prometheus.Desc
}

// Peers adds the metrics of each peer, which are read when they are asked for.
func (s *Set) Peers(read func() []link.State) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("starling_peer_"+name, help, append([]string{"peer"}, labels...), nil)
	}
	s.registry.MustRegister(peers{
		read: read,
		connected: desc("connected", "Whether there is a connection to the peer, and whether it goes through a relay.",
			"relayed"),
		roundTrip: desc("round_trip_seconds", "Round trip of the last control message."),
		pace:      desc("pace_bytes_per_second", "Rate at which bulk is sent to the peer at most."),
		download:  desc("download_bytes_per_second", "Rate at which the peer delivers while it is asked for bulk."),
		sent:      desc("sent_bytes_total", "Bytes of bulk sent to the peer, framing included."),
		received:  desc("received_bytes_total", "Bytes of bulk that came from the peer, framing included."),
	})
}

// Describe implements prometheus.Collector.
func (p peers) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.connected, p.roundTrip, p.pace, p.download, p.sent, p.received} {
		to <- d
	}
}

// Collect implements prometheus.Collector. Unknown values are left out.
func (p peers) Collect(to chan<- prometheus.Metric) {
	for _, l := range p.read() {
		gauge := func(d *prometheus.Desc, x float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, append([]string{l.Peer.String()}, labels...)...)
		}
		up := 0.0
		if l.Addr != "" {
			up = 1
		}
		gauge(p.connected, up, strconv.FormatBool(l.Relayed))
		if l.RoundTrip > 0 {
			gauge(p.roundTrip, l.RoundTrip.Seconds())
		}
		gauge(p.pace, l.Pace)
		if l.Download > 0 {
			gauge(p.download, l.Download)
		}
		to <- prometheus.MustNewConstMetric(p.sent, prometheus.CounterValue, float64(l.Sent), l.Peer.String())
		to <- prometheus.MustNewConstMetric(p.received, prometheus.CounterValue, float64(l.Received), l.Peer.String())
	}
}
