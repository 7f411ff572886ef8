// Package sim plays a whole network under virtual time: the real chain application, the real roles, the real engine and
// real signatures, on one event heap. A seed draws latency, loss, speed, crashes and adversaries; the same seed gives
// the same run, event by event.
//
// Its tests play a scenario for every adversary; package attack plays random mixes of them. Package workload is what is
// trained, package ledger the chain, package clock the virtual time, and package check looks at a network from outside.
//
// Processes, sockets and CometBFT are package node's.
package sim
