package main

func Example() {
	main()
	// Output:
	// "paid": failed false, circuit open false, never ran false, wait 0s
	// "": failed true, circuit open false, never ran false, wait 0s
	// "": failed true, circuit open true, never ran false, wait 30s
	// "": failed true, circuit open true, never ran true, wait 30s
}
