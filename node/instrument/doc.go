// Package instrument is the metrics of one process, and the list of its actions under way. The dashboard and the
// commands read it; no role does.
package instrument
