// Command ledger is a payment service to try govern against: it pays, and can hang up instead of saying so.
//
//	go run ./examples/payments/ledger [-listen 127.0.0.1:8089] [-lose N]
//
// It remembers the keys of its calls, answers a repetition with the first answer, and lists what it paid at GET /payments.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"sync"
	"time"
)

// payment is one that was made.
type payment struct {
	ID     string `json:"id"`
	Key    string `json:"key"`
	Order  string `json:"order"`
	Amount int    `json:"amount"`
	Status string `json:"status"`
}

type ledger struct {
	mu   sync.Mutex
	paid []payment
	lose int // answers that are still to be lost
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8089", "address to listen on")
	lose := flag.Int("lose", 0, "pay, and hang up without an answer, this many times")
	flag.Parse()
	l := &ledger{lose: *lose}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments", l.pay)
	mux.HandleFunc("GET /payments/{key}", l.find)
	mux.HandleFunc("GET /payments", l.list)
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Printf("listening on http://%s", *listen)
	log.Fatal(server.ListenAndServe())
}

func (l *ledger) pay(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Order  string `json:"order"`
		Amount int    `json:"amount"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&asked); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	made, known := l.byKey(r.Header.Get("Idempotency-Key"))
	if !known {
		made = payment{ID: fmt.Sprintf("p-%d", len(l.paid)+1), Key: r.Header.Get("Idempotency-Key"), Order: asked.Order, Amount: asked.Amount, Status: "paid"}
		l.paid = append(l.paid, made)
	}
	if l.lose > 0 {
		l.lose--
		panic(http.ErrAbortHandler) // it is paid, and nobody hears of it
	}
	answer(w, http.StatusCreated, made)
}

func (l *ledger) find(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	made, known := l.byKey(r.PathValue("key"))
	if !known {
		http.Error(w, "no such payment", http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, made)
}

func (l *ledger) list(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"payments": append([]payment{}, l.paid...)})
}

// byKey finds the payment that a key was used for. A call without one is always another.
func (l *ledger) byKey(key string) (payment, bool) {
	for _, p := range l.paid {
		if key != "" && p.Key == key {
			return p, true
		}
	}
	return payment{}, false
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
