package metrics

import "github.com/prometheus/client_golang/prometheus"

// labelled is a collector of values that differ in one label.
type labelled struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func() map[string]float64
}

// Labelled adds a metric with a value for each word of a label, which are read when they are asked for. counts says
// that the values never fall.
func (s *Set) Labelled(name, help, label string, counts bool, read func() map[string]float64) {
	kind := prometheus.GaugeValue
	if counts {
		kind = prometheus.CounterValue
	}
	s.registry.MustRegister(labelled{prometheus.NewDesc(name, help, []string{label}, nil), kind, read})
}

// Describe implements prometheus.Collector.
func (l labelled) Describe(to chan<- *prometheus.Desc) { to <- l.desc }

// Collect implements prometheus.Collector.
func (l labelled) Collect(to chan<- prometheus.Metric) {
	for word, x := range l.read() {
		to <- prometheus.MustNewConstMetric(l.desc, l.kind, x, word)
	}
}
