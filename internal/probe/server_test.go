package probe_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// serve is a candidate's server in a process of its own.
func serve(how, address string) int {
	if how == "late" {
		time.Sleep(500 * time.Millisecond) // a server that takes its time to come up
	}
	if how == "crash" {
		fmt.Println("cannot reach the database")
		return 3
	}
	l, err := net.Listen("tcp4", address)
	if err != nil {
		fmt.Println(err)
		return 4
	}
	if how == "mute" {
		for {
			if _, err := l.Accept(); err != nil {
				return 5
			}
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "all is fine\n") })
	mux.Handle("/moved", http.RedirectHandler("/health", http.StatusFound))
	fmt.Fprintln(os.Stderr, http.Serve(l, mux))
	return 6
}
