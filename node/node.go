// Package node is configuration and wiring: it makes a job file ready to run, puts keys, chain, network, compute and
// roles together into parties, feeds the roles real events and performs their actions, and writes what a run leaves
// behind. It is the only package that may import everything.
//
// It holds no rule: what is right, who is paid and what bits come out is decided in protocol/, compute/ and exchange/.
package node
