"""What is really sent: the view shaped for one request, never stored."""
