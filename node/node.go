// Package node trains a job: it chooses the network in this process or one that others run, and measures what
// verification adds. The packages below it are the processes and what they have; ARCHITECTURE.md lists them.
//
// It holds no rule: what is right, what is paid and which bits come out is decided in protocol/, compute/ and
// exchange/.
package node
