// Package recommend ranks training strategies for a job, a network and a machine, by measured losses and modelled
// times. It trains nothing.
package recommend
