// Package node trains a job: it chooses the network in this process or a network of other machines, and measures what
// verification adds. The packages below it are the processes and their parts; ARCHITECTURE.md lists them.
//
// The package holds no rule: correctness, pay and the bits of results are decided in protocol/, compute/ and
// exchange/.
package node
