// Package prepare makes a job file ready to train: it tokenizes the data, records the program, initialises the first
// checkpoint, writes the work specification and the order. It starts no process and asks no network.
package prepare
